// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Runs each kernel, and the same steps one after another with the library's calls, and compares
// every byte.

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/tabulate.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "furl/furl.cuh"
#include "kernels.cuh"

namespace {

using furl::i64;
using furl::u8;

constexpr furl::random_key key{42, 1};

void require(const furl::status& s) {
  if (s) return;
  std::fprintf(stderr, "%s\n", furl::to_string(s).c_str());
  std::exit(1);
}

// ---- Data -------------------------------------------------------------------------------------

/// Numbers between -2 and 2 that differ with the seed.
template <class T>
struct noise {
  unsigned seed;

  __device__ T operator()(i64 index) const {
    const unsigned bits = (unsigned(index) + 1u) * 2654435761u * (2u * seed + 1u);
    return furl::round_to<T>(float(bits >> 16) / 16384.0f - 2.0f);
  }
};

template <class T>
thrust::device_vector<T> random_array(i64 count, unsigned seed) {
  thrust::device_vector<T> x(static_cast<std::size_t>(count));
  thrust::tabulate(x.begin(), x.end(), noise<T>{seed});
  return x;
}

template <class T>
T* data(thrust::device_vector<T>& x) {
  return thrust::raw_pointer_cast(x.data());
}

/// Whether two arrays are equal, byte for byte.
template <class T>
bool same(const thrust::device_vector<T>& a, const thrust::device_vector<T>& b) {
  const thrust::host_vector<T> on_host[2] = {a, b};
  return a.size() == b.size() && (a.empty() || std::memcmp(on_host[0].data(), on_host[1].data(),
                                                           a.size() * sizeof(T)) == 0);
}

thrust::device_vector<u8> blob_of(const furl::plan& p) {
  return thrust::device_vector<u8>(static_cast<std::size_t>(p.size_bytes()), u8{0xa5});
}

template <class T>
thrust::device_vector<u8> compressed(const furl::plan& p, thrust::device_vector<T>& x) {
  auto blob = blob_of(p);
  require(furl::compress(p, {data(x), p.num_elements()}, {data(blob), blob.size()}, key, nullptr));
  return blob;
}

// ---- The steps, one after another -------------------------------------------------------------

template <class T>
__global__ void apply(fuse::bias_gelu<T> activation, const T* x, T* y, i64 count) {
  const i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] = furl::round_to<T>(activation(furl::element_to_f32(x[i]), i));
}

template <class T>
__global__ void layer_norm(int row_length, const T* x, const T* gain, const T* offset,
                           float epsilon, T* y) {
  const i64 begin = i64(blockIdx.x) * row_length;
  const auto row_is = fuse::moments_of_row(x + begin, row_length, epsilon);
  for (int i = threadIdx.x; i < row_length; i += 32) {
    const float value = furl::element_to_f32(x[begin + i]);
    y[begin + i] =
        furl::round_to<T>(fmaf((value - row_is.mean) * row_is.scale, furl::element_to_f32(gain[i]),
                               furl::element_to_f32(offset[i])));
  }
}

template <class T>
__global__ void multiply_add(const T* gradient, const float* x, T* sum, i64 count) {
  const i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count)
    sum[i] = furl::round_to<T>(
        fmaf(furl::element_to_f32(gradient[i]), x[i], furl::element_to_f32(sum[i])));
}

unsigned blocks_of(i64 count) {
  return unsigned((count + 255) / 256);
}

// ---- Both ways --------------------------------------------------------------------------------

struct images {
  i64 batch;
  i64 channels;
  i64 height;
  i64 width;
};

/// The kernels that have blocks of their own: bias, GELU, compress; decompress, multiply, add.
template <class T>
bool agrees(const images& size, const furl::extents& window) {
  furl::codec codec;
  codec.window = window;
  const furl::plan p =
      *furl::plan::make(codec, {size.batch, size.channels, size.height, size.width});
  const i64 count = p.num_elements();
  auto x = random_array<T>(count, 1);
  auto bias = random_array<T>(size.channels, 2);
  auto y = random_array<T>(count, 3);
  auto gradient = random_array<T>(count, 4);
  auto sum = random_array<T>(count, 5);
  auto blob = blob_of(p);
  const fuse::bias_gelu<T> activation{data(bias),
                                      furl::divisor64(furl::u64(size.height * size.width)),
                                      furl::divisor64(furl::u64(size.channels))};
  const furl::block_layout layout(p);
  if (count > 0) {
    const unsigned blocks = layout.num_blocks();
    const unsigned threads = layout.num_threads();
    const unsigned shared = layout.shared_bytes();
    furl::with_path(layout.means.path, [&](auto path) {
      if constexpr (path == furl::lfc_path::table)
        fuse::pool_activation<<<blocks_of(p.num_cells()), 256>>>(layout, furl::cell_list(p.grid()),
                                                                 activation, data(x), data(blob));
      fuse::bias_gelu_compress<T, path>
          <<<blocks, threads, shared>>>(layout, activation, data(x), data(y), data(blob), key);
      fuse::add_product<T, path>
          <<<blocks, threads, shared>>>(layout, data(blob), data(gradient), data(sum));
    });
  }

  thrust::device_vector<T> y_apart(y.size());
  auto sum_apart = random_array<T>(count, 5);
  thrust::device_vector<float> restored(y.size());
  if (count > 0) apply<<<blocks_of(count), 256>>>(activation, data(x), data(y_apart), count);
  auto blob_apart = compressed(p, y_apart);
  require(
      furl::decompress(p, {data(blob_apart), blob_apart.size()}, {data(restored), count}, nullptr));
  if (count > 0)
    multiply_add<<<blocks_of(count), 256>>>(data(gradient), data(restored), data(sum_apart), count);
  return same(y, y_apart) && same(blob, blob_apart) && same(sum, sum_apart);
}

/// Layer norm that compresses its input.
template <class T>
bool agrees(i64 num_rows, int row_length) {
  const furl::plan p = *furl::plan::make({}, {num_rows, row_length});
  const float epsilon = 1e-5f;
  auto x = random_array<T>(p.num_elements(), 1);
  auto gain = random_array<T>(row_length, 2);
  auto offset = random_array<T>(row_length, 3);
  thrust::device_vector<T> y(x.size());
  thrust::device_vector<T> y_apart(x.size());
  auto blob = blob_of(p);
  if (num_rows > 0) {
    fuse::layer_norm_compress<<<unsigned((num_rows + 3) / 4), 128>>>(
        furl::blob_layout(p), row_length, data(x), data(gain), data(offset), epsilon, data(y),
        data(blob), key);
    layer_norm<<<unsigned(num_rows), 32>>>(row_length, data(x), data(gain), data(offset), epsilon,
                                           data(y_apart));
  }
  auto blob_apart = compressed(p, x);
  return same(y, y_apart) && same(blob, blob_apart);
}

template <class T>
bool images_agree() {
  bool good = true;
  for (const i64 side : {7, 14, 28, 56, 75})
    for (const furl::extents& window : {furl::extents{}, furl::extents{1, 1, 8, 8}})
      good &= agrees<T>(images{3, 5, side, side}, window);
  good &= agrees<T>(images{2, 3, 40, 33}, {1, 1, 16, 16});  // cells that no block holds
  good &= agrees<T>(images{1, 1, 1, 1}, {});
  good &= agrees<T>(images{0, 3, 8, 8}, {1, 1, 8, 8});
  return good;
}

template <class T>
bool rows_agree() {
  bool good = true;
  for (const int row_length : {1, 7, 64, 768, 1000, 1024, 2500, 4096})
    good &= agrees<T>(5000 / row_length + 3, row_length);
  good &= agrees<T>(0, 64);
  return good;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return std::getenv("FURL_REQUIRE_DEVICE") != nullptr ? 1 : 0;
  }
  const bool good = images_agree<furl::bf16>() & images_agree<float>() & rows_agree<furl::bf16>() &
                    rows_agree<furl::f16>() & rows_agree<float>();
  std::printf("fused and step by step: %s\n", good ? "the same bytes" : "DIFFERENT");
  return good ? 0 : 1;
}
