// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// libfurl in device memory: the blobs and tensors of host memory, byte for byte, on a stream.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "furl.h"

namespace {

using bytes = std::vector<unsigned char>;

constexpr uint64_t seed = 3;
constexpr uint64_t offset = 4;
constexpr int64_t shape[] = {2, 3, 20, 20};
constexpr int64_t n = 2400;

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

void require(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(code));
  std::exit(1);
}

/// An array in device memory.
class device_array {
 public:
  explicit device_array(const bytes& content) : size_(content.size()) {
    require(cudaMalloc(&data_, size_));
    require(cudaMemcpy(data_, content.data(), size_, cudaMemcpyHostToDevice));
  }
  ~device_array() { (void)cudaFree(data_); }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;

  void* data() const { return data_; }
  bytes content() const {
    bytes out(size_);
    require(cudaMemcpy(out.data(), data_, size_, cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

furl_tensor tensor(void* data, bool is_device, int kind, int bits, const int64_t* sizes, int rank) {
  furl_tensor t{};
  t.data = data;
  t.device.type = is_device ? 2 : 1;
  t.rank = rank;
  t.dtype = {uint8_t(kind), uint8_t(bits), 1};
  t.shape = sizes;
  return t;
}

/// x and a blob of each plan, through all calls, in both memories.
void compare(const furl_plan& plan, bool is_mask, const bytes& x, cudaStream_t stream) {
  furl_sizes sizes{};
  sizes.struct_bytes = sizeof sizes;
  char text[FURL_TEXT_BYTES] = "";
  const auto done = [&](int32_t code) { expect(code == FURL_OK, text); };
  done(furl_plan_sizes(&plan, &sizes, text));
  const int64_t blob_bytes = sizes.blob_bytes;
  bytes blob(std::size_t(blob_bytes), 1);
  bytes y(x.size(), 1);
  bytes out(x.size(), 1);
  const device_array device_x(x);
  const device_array device_blob(blob);
  const device_array device_y(y);
  const device_array device_out(out);
  const uint64_t key[2] = {seed, offset};
  bytes key_bytes(sizeof key);
  std::memcpy(key_bytes.data(), key, sizeof key);
  const device_array device_key(key_bytes);
  furl_options options{};
  options.struct_bytes = sizeof options;
  for (const bool is_device : {false, true}) {
    const auto floats = [&](void* host, const device_array& device) {
      return tensor(is_device ? device.data() : host, is_device, 2, 32, shape, 4);
    };
    const furl_tensor of_x = floats(const_cast<unsigned char*>(x.data()), device_x);
    const furl_tensor of_y = floats(y.data(), device_y);
    const furl_tensor of_out = floats(out.data(), device_out);
    const furl_tensor of_blob =
        tensor(is_device ? device_blob.data() : blob.data(), is_device, 1, 8, &blob_bytes, 1);
    options.stream = is_device ? stream : nullptr;
    options.device_key = is_device ? static_cast<uint64_t*>(device_key.data()) : nullptr;
    const uint64_t given = is_device ? 77 : offset;  // device_key takes its place
    if (is_mask) {
      done(furl_relu(&plan, &of_x, &of_y, &of_blob, seed, given, &options, text));
      done(furl_relu_backward(&plan, &of_blob, &of_x, &of_out, &options, text));
    } else {
      done(furl_compress(&plan, &of_x, &of_blob, seed, given, &options, text));
      done(furl_decompress(&plan, &of_blob, &of_y, seed, given, &options, text));
      done(furl_decompress(&plan, &of_blob, &of_out, seed, given, &options, text));
      done(furl_decompress_add(&plan, &of_blob, &of_out, seed, given, &options, text));
    }
  }
  require(cudaStreamSynchronize(stream));
  expect(device_blob.content() == blob, "blobs are equal");
  expect(device_y.content() == y, "tensors are equal");
  expect(device_out.content() == out, "sums or gradients are equal");
}

void expect_refused(int32_t code, int32_t expected, const char* text, const char* expected_text) {
  expect(code == expected && std::string(text) == expected_text, expected_text);
}

void refusals(const furl_plan& plan, bytes x) {
  const int64_t blob_bytes = 4096;
  bytes blob(4096);
  const device_array device_x(x);
  const device_array device_blob(blob);
  char text[FURL_TEXT_BYTES] = "";
  furl_tensor of_x = tensor(device_x.data(), true, 2, 32, shape, 4);
  furl_tensor of_blob = tensor(blob.data(), false, 1, 8, &blob_bytes, 1);
  const auto call = [&] { return furl_compress(&plan, &of_x, &of_blob, 1, 2, nullptr, text); };
  expect_refused(call(), FURL_WRONG_MEMORY, text,
                 "blob: must be in the memory of the other tensors");
  of_blob.device.type = 2;
  expect_refused(call(), FURL_WRONG_MEMORY, text,
                 "blob: must be device memory, not plain host memory");
  of_blob.data = device_blob.data();
  of_blob.byte_offset = 8;
  expect_refused(call(), FURL_MISALIGNED, text, "blob: must be aligned to 16 bytes");
  of_blob.byte_offset = 0;
  of_x.byte_offset = 2;
  expect_refused(call(), FURL_MISALIGNED, text, "x: must be aligned to its elements");
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return std::getenv("FURL_REQUIRE_DEVICE") != nullptr ? 1 : 0;
  }
  bytes x(4 * n);
  for (int64_t i = 0; i < n; ++i) {
    const float value = float(i % 113) / 16.0f - 3.0f;
    std::memcpy(&x[std::size_t(4 * i)], &value, sizeof value);
  }
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  furl_codec codec;
  furl_codec_init(&codec, sizeof codec);
  furl_plan plan;
  char text[FURL_TEXT_BYTES];
  expect(furl_plan_make(&codec, shape, 4, &plan, text) == FURL_OK, text);
  compare(plan, false, x, stream);
  refusals(plan, x);
  codec.coding = FURL_ROTATED;
  expect(furl_plan_make(&codec, shape, 4, &plan, text) == FURL_OK, text);
  compare(plan, false, x, stream);
  codec.coding = FURL_POSITIVES;
  expect(furl_plan_make(&codec, shape, 4, &plan, text) == FURL_OK, text);
  compare(plan, true, x, stream);
  expect(furl_plan_make_codes(1, shape, 4, &plan, text) == FURL_OK, text);
  compare(plan, true, x, stream);
  require(cudaStreamDestroy(stream));
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
