// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Every header but those of host memory compiles at run time, alone, and so does a kernel made from
// them.

#include <gtest/gtest.h>
#include <nvrtc.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace furl::test {
namespace {

namespace fs = std::filesystem;

/// Empty if the source compiles without a warning, else what the compiler says.
std::string compile(const std::string& source, const std::string& standard,
                    bool default_device = false) {
  nvrtcProgram program = nullptr;
  EXPECT_EQ(nvrtcCreateProgram(&program, source.c_str(), "test.cu", 0, nullptr, nullptr),
            NVRTC_SUCCESS);
  std::vector<std::string> options = {"--std=" + standard, "--gpu-architecture=compute_90",
                                      "-I" FURL_INCLUDE_DIR};
  if (default_device) options.push_back("--device-as-default-execution-space");
  const std::string folders = FURL_CUDA_INCLUDE_DIRS;
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(';', begin), folders.size());
    options.push_back("-I" + folders.substr(begin, end - begin));
    options.push_back("-I" + folders.substr(begin, end - begin) + "/cccl");
    begin = end + 1;
  }
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const nvrtcResult result =
      nvrtcCompileProgram(program, static_cast<int>(pointers.size()), pointers.data());
  std::size_t size = 0;
  EXPECT_EQ(nvrtcGetProgramLogSize(program, &size), NVRTC_SUCCESS);
  std::string log(size, '\0');
  EXPECT_EQ(nvrtcGetProgramLog(program, log.data()), NVRTC_SUCCESS);
  EXPECT_EQ(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  const std::string said = log.c_str();
  return result != NVRTC_SUCCESS && said.empty() ? nvrtcGetErrorString(result) : said;
}

std::vector<std::string> headers() {
  std::vector<std::string> found;
  const fs::path root = FURL_INCLUDE_DIR;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = fs::relative(entry.path(), root).generic_string();
    const bool host = name.find("/host/") != std::string::npos || name == "furl/furl.hpp" ||
                      name == "furl/compress.hpp" || name == "furl/stash.hpp" ||
                      name == "furl/thread_pool.hpp";
    const bool host_only =
        name == "furl/detail/extra/codebook.hpp" || name == "furl/extra/optimal_codebooks.hpp";
    if (entry.is_regular_file() && name != "furl/FORMAT.md" && !host && !host_only)
      found.push_back(name);
  }
  return found;
}

/// What a kernel is made from: needs no option. The rest, such as plans, is not marked for the
/// device, and needs --device-as-default-execution-space.
bool is_for_kernels(const std::string& name) {
  for (const char* folder : {"furl/block", "furl/detail/device/", "furl/config.hpp"})
    if (name.rfind(folder, 0) == 0) return true;
  return false;
}

TEST(Nvrtc, CompilesEveryHeaderAlone) {
  const auto names = headers();
  EXPECT_GT(names.size(), 20u);
  for (const std::string& name : names)
    EXPECT_EQ(compile("#include \"" + name + "\"\n", "c++17", !is_for_kernels(name)), "") << name;
}

TEST(Nvrtc, CompilesKernels) {
  const std::string kernels = R"(
#include "furl/block.cuh"
using namespace furl;
extern "C" __global__ void compress_tiles(blob_layout layout, const bf16* x, u8* blob) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> values;
    load_tile_as_f32(x + tile * tile_elements, count, values);
    for_each_element(values, [](int, float& value) { value *= 0.5f; });
    compress_tile(layout, tile, count, values, random_key{1, 2}, blob);
  }
}
extern "C" __global__ void compress_squares(block_layout layout, const bf16* x, bf16* y, u8* blob) {
  extern __shared__ float4 shared[];
  const tile_run run(layout);
  const block_compress<lfc_path::slots> block(layout, run, shared);
  tile_fragment<float> values;
  const auto square = [](float value, i64) { return value * value; };
  block.load(map_elements(x, square), blob, values);
  if (run.count == 0) return;
  store_tile_as(y + run.tile * tile_elements, run.count, values);
  block.compress(values, random_key{1, 2}, blob);
}
extern "C" __global__ void decompress_twice(block_layout layout, const u8* blob, float* y) {
  extern __shared__ float4 shared[];
  const tile_run run(layout);
  const block_decompress<lfc_path::table> block(layout, run, shared, blob);
  if (run.count == 0) return;
  tile_fragment<float> out;
  block.for_each_row([&](int row, const float (&values)[4]) {
    for (int k = 0; k < 4; ++k) out.word[row][k] = 2.0f * values[k];
  });
  store_tile(y + run.tile * tile_elements, run.count, out);
}
extern "C" __global__ void __launch_bounds__(128)
    there_and_back(blob_layout layout, const bf16* x, float* y, u8* blob) {
  __shared__ compress_rotation_storage of_warps[4];
  compress_rotation_storage& storage = of_warps[warp_index()];
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<bf16> values;
    load_tile(x + tile * tile_elements, count, values);
    draw_signs(tile, random_key{1, 2}, storage);
    compress_rotated_tile(layout, tile, count, values, storage, blob);
    const unsigned mask = relu_tile(values, count);
    compress_positives_tile(layout, tile, count, mask, values, storage, blob);
    const rotated_tile loaded = load_rotated_tile(layout, tile, blob, storage);
    tile_fragment<float> out;
    for (int row = 0; row < rows_per_tile; ++row) dequantize_row(loaded, row, out.word[row]);
    store_tile(y + tile * tile_elements, count, out);
  }
}
extern "C" __global__ void decompress_rotated(block_layout layout, const u8* blob, float* y) {
  extern __shared__ float4 shared[];
  const tile_run run(layout);
  const block_decompress<lfc_path::slots> block(layout, run, shared, blob);
  if (run.count == 0) return;
  tile_fragment<float> out;
  block.for_each_rotated_row(random_key{1, 2}, [&](int row, const float (&values)[4]) {
    for (int k = 0; k < 4; ++k) out.word[row][k] = values[k];
  });
  store_tile(y + run.tile * tile_elements, run.count, out);
}
extern "C" __global__ void range(const float* x, i64 count, min_max* out) {
  __shared__ block_min_max<128>::TempStorage storage;
  const min_max found = block_min_max<128>(storage).of_array(x, count);
  if (threadIdx.x == 0) *out = found;
}
)";
  EXPECT_EQ(compile(kernels, "c++17"), "");
  EXPECT_EQ(compile(kernels, "c++20"), "");
}

}  // namespace
}  // namespace furl::test
