// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The examples in the comments of block/: each stands here between two marks, where it is compiled
// and run, and cmake/check_snippets.py compares the two texts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/buffer.cuh"
#include "furl/furl.cuh"

namespace {

// [snippet block_min_max]
// The largest magnitude of each row, by a block for each: <<<rows, 128>>>.
__global__ void row_magnitudes(const float* x, int columns, float* magnitude) {
  using reduction = furl::block_min_max<128>;
  __shared__ reduction::TempStorage storage;
  const float* const row = x + furl::i64(blockIdx.x) * columns;
  furl::min_max mine;  // of no element
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    mine = furl::combine(mine, {row[i], row[i]});
  const furl::min_max found = reduction(storage).reduce(mine);
  if (threadIdx.x == 0) magnitude[blockIdx.x] = fmaxf(-found.lo, found.hi);
}
// [snippet block_min_max]

// [snippet load_tile]
// x = max(x, 0) in place, a tile for each warp of any one-dimensional grid.
__global__ void relu_in_place(float* x, furl::i64 num_elements) {
  using namespace furl;
  for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += tile_stride()) {
    const int count = elements_in_tile(num_elements, tile);
    tile_fragment<float> values;
    load_tile(x + tile * tile_elements, count, values);
    for_each_element(values, [](int, float& value) { value = fmaxf(value, 0.0f); });
    store_tile(x + tile * tile_elements, count, values);
  }
}
// [snippet load_tile]

// [snippet store_tile_as]
// y = factor * x, computed in f32 and rounded once to bf16.
__global__ void scale(const furl::f16* x, float factor, furl::bf16* y, furl::i64 num_elements) {
  using namespace furl;
  for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += tile_stride()) {
    const int count = elements_in_tile(num_elements, tile);
    tile_fragment<float> values;
    load_tile_as_f32(x + tile * tile_elements, count, values);
    for_each_element(values, [factor](int, float& value) { value *= factor; });
    store_tile_as(y + tile * tile_elements, count, values);
  }
}
// [snippet store_tile_as]

// [snippet map_elements]
// Compresses the squares of x, which are nowhere in memory.
__global__ void compress_squares(furl::block_layout layout, const float* x, unsigned char* blob,
                                 furl::random_key key) {
  extern __shared__ float4 shared[];
  const furl::tile_run run(layout);
  const furl::block_compress<furl::lfc_path::slots> block(layout, run, shared);
  const auto square = [](float value, furl::i64 /*index*/) { return value * value; };
  furl::tile_fragment<float> squares;
  block.load(furl::map_elements(x, square), blob, squares);
  if (run.count > 0) block.compress(squares, key, blob);
}
// [snippet map_elements]

// [snippet store_codes]
// Packs the signs of x, with the layout of a plan from make_codes(1, shape).
__global__ void pack_signs(furl::blob_layout layout, const float* x, unsigned char* blob) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> values;
    load_tile(x + tile * tile_elements, count, values);
    u32 codes[rows_per_tile] = {};
    for (int row = 0; row < rows_per_tile; ++row)
      for (int k = 0; k < 4; ++k)
        if (values.word[row][k] < 0.0f) codes[row] |= 1u << (8 * k);
    clear_absent(codes, count);
    store_codes(codes, 1, blob + layout.place_of(tile).offset);
  }
}
// [snippet store_codes]

// [snippet load_codes]
// Negates the elements of y where the signs that pack_signs has packed are set.
__global__ void negate_by_signs(furl::blob_layout layout, const unsigned char* blob, float* y) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> values;
    load_tile(y + tile * tile_elements, count, values);
    u32 codes[rows_per_tile];
    load_codes(blob + layout.place_of(tile).offset, 1, codes);
    for (int row = 0; row < rows_per_tile; ++row)
      for (int k = 0; k < 4; ++k)
        if ((codes[row] >> (8 * k) & 1u) != 0) values.word[row][k] = -values.word[row][k];
    store_tile(y + tile * tile_elements, count, values);
  }
}
// [snippet load_codes]

// [snippet pool_cells]
// Writes all means of a tensor, before a kernel with lfc_path::table: a thread for each cell.
__global__ void pool_all(furl::cell_list cells, furl::block_layout layout, const float* x,
                         unsigned char* blob) {
  const furl::array_elements<float> elements{x};
  furl::pool_cells(elements, cells, 0, cells.grid.num_cells(), layout.meta,
                   blob + layout.lfc_offset);
}
// [snippet pool_cells]

// [snippet compress_tile]
// Compresses the sum of two arrays, without means: a tile for each warp.
__global__ void compress_sum(furl::blob_layout layout, const float* a, const float* b,
                             unsigned char* blob, furl::random_key key) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> sum;
    tile_fragment<float> other;
    load_tile(a + tile * tile_elements, count, sum);
    load_tile(b + tile * tile_elements, count, other);
    for (int row = 0; row < rows_per_tile; ++row)
      for (int k = 0; k < 4; ++k) sum.word[row][k] += other.word[row][k];
    compress_tile(layout, tile, count, sum, key, blob);
  }
}
// [snippet compress_tile]

// [snippet compress_rotated_tile]
// Compresses the squares of x to rotated codes: <<<any, 128>>>.
__global__ void compress_rotated_squares(furl::blob_layout layout, const float* x,
                                         unsigned char* blob, furl::random_key key) {
  using namespace furl;
  __shared__ small_rotation_storage of_warps[4];
  small_rotation_storage& storage = of_warps[warp_index()];
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> values;
    load_tile(x + tile * tile_elements, count, values);
    for_each_element(values, [](int, float& value) { value *= value; });
    draw_signs(tile, key, storage);
    compress_rotated_tile(layout, tile, count, values, storage, blob);
  }
}
// [snippet compress_rotated_tile]

// [snippet load_rotated_tile]
// Restores what compress_rotated_squares has compressed: <<<any, 128>>>.
__global__ void restore_rotated(furl::blob_layout layout, const unsigned char* blob, float* y,
                                furl::random_key key) {
  using namespace furl;
  __shared__ small_rotation_storage of_warps[4];
  small_rotation_storage& storage = of_warps[warp_index()];
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    draw_signs(tile, key, storage);
    const rotated_tile loaded = load_rotated_tile(layout, tile, blob, storage);
    tile_fragment<float> values;
    for (int row = 0; row < rows_per_tile; ++row) dequantize_row(loaded, row, values.word[row]);
    store_tile(y + tile * tile_elements, elements_in_tile(layout.num_elements, tile), values);
  }
}
// [snippet load_rotated_tile]

// [snippet compress_positives_tile]
// The ReLU of the sum of x and b to y, and all that its backward pass needs: <<<any, 128>>>.
__global__ void relu_of_sum(furl::blob_layout layout, const float* x, const float* b, float* y,
                            unsigned char* blob, furl::random_key key) {
  using namespace furl;
  __shared__ small_rotation_storage of_warps[4];
  small_rotation_storage& storage = of_warps[warp_index()];
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> values;
    tile_fragment<float> addend;
    load_tile(x + tile * tile_elements, count, values);
    load_tile(b + tile * tile_elements, count, addend);
    for (int row = 0; row < rows_per_tile; ++row)
      for (int k = 0; k < 4; ++k) values.word[row][k] += addend.word[row][k];
    const unsigned mask = relu_tile(values, count);
    store_tile(y + tile * tile_elements, count, values);
    draw_signs(tile, key, storage);
    compress_positives_tile(layout, tile, count, mask, values, storage, blob);
  }
}
// [snippet compress_positives_tile]

// [snippet normalise_tile]
// Compresses x as layer norm normalises it, a tile for each warp of any one-dimensional grid:
// furl::statistics_map given({mean, inverse_deviation, tokens, width}).
__global__ void compress_normalised(furl::blob_layout layout, furl::statistics_map given,
                                    const float* x, unsigned char* blob, furl::random_key key) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> values;
    load_tile(x + tile * tile_elements, count, values);
    normalise_tile(given, tile, count, values);
    compress_tile(layout, tile, count, values, key, blob);
  }
}
// [snippet normalise_tile]

// [snippet denormalise_tile]
// Restores what compress_normalised has compressed.
__global__ void restore_normalised(furl::blob_layout layout, furl::statistics_map given,
                                   const unsigned char* blob, float* y) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    coded_tile coded;
    if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
    tile_fragment<float> values;
    for (int row = 0; row < rows_per_tile; ++row) dequantize_row(coded, row, values.word[row]);
    denormalise_tile(given, tile, count, values);
    store_tile(y + tile * tile_elements, count, values);
  }
}
// [snippet denormalise_tile]

// [snippet block_compress]
// Copies x to y and compresses it, in one read.
template <furl::lfc_path Path>
__global__ void __launch_bounds__(furl::block_compress<Path>::max_threads)
    copy_compress(furl::block_layout layout, const float* x, float* y, unsigned char* blob) {
  extern __shared__ float4 shared[];
  const furl::tile_run run(layout);
  const furl::block_compress<Path> block(layout, run, shared);
  furl::tile_fragment<float> values;
  block.load(furl::array_elements<float>{x}, blob, values);
  if (run.count == 0) return;  // beyond the tensor
  furl::store_tile(y + run.tile * furl::tile_elements, run.count, values);
  block.compress(values, furl::random_key{1, 2}, blob);
}
void launch(const furl::plan& plan, const float* x, float* y, unsigned char* blob) {
  const furl::block_layout layout(plan);
  const unsigned blocks = layout.num_blocks();
  const unsigned threads = layout.num_threads();
  if (blocks == 0) return;                         // an empty tensor
  if (layout.means.path == furl::lfc_path::table)  // pool_all is the example of pool_cells
    pool_all<<<unsigned((plan.num_cells() + 127) / 128), 128>>>(furl::cell_list(plan.grid()),
                                                                layout, x, blob);
  furl::with_path(layout.means.path, [&](auto path) {
    copy_compress<path><<<blocks, threads, layout.shared_bytes()>>>(layout, x, y, blob);
  });
}
// [snippet block_compress]

// [snippet block_decompress]
// y = factor * x for the x in a blob. The launch is as with block_compress.
template <furl::lfc_path Path>
__global__ void __launch_bounds__(furl::block_decompress<Path>::max_threads)
    decompress_scaled(furl::block_layout layout, const unsigned char* blob, float factor,
                      float* y) {
  extern __shared__ float4 shared[];
  const furl::tile_run run(layout);
  const furl::block_decompress<Path> block(layout, run, shared, blob);
  if (run.count == 0) return;  // beyond the tensor
  furl::tile_fragment<float> out;
  block.for_each_row([&](int row, const float(&values)[4]) {
    for (int k = 0; k < 4; ++k) out.word[row][k] = factor * values[k];
  });
  furl::store_tile(y + run.tile * furl::tile_elements, run.count, out);
}
// [snippet block_decompress]

// [snippet load_coded_tile]
// Restores the tiles of a plan without means.
__global__ void restore(furl::blob_layout layout, const unsigned char* blob, float* y) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    coded_tile coded;
    if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
    tile_fragment<float> values;
    for (int row = 0; row < rows_per_tile; ++row) dequantize_row(coded, row, values.word[row]);
    store_tile(y + tile * tile_elements, count, values);
  }
}
// [snippet load_coded_tile]

}  // namespace

namespace furl::test {
namespace {

constexpr random_key key{1, 2};
constexpr i64 length = 5 * 1024 + 77;

std::vector<float> wave(i64 count, int step) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i) * step % 257 - 100) / 16.0f;
  return x;
}

std::vector<u8> compressed(const plan& p, const std::vector<float>& x,
                           const host::options& o = {}) {
  std::vector<u8> blob(static_cast<std::size_t>(p.size_bytes()));
  EXPECT_TRUE(host::compress(p, x, blob, key, o).ok());
  return blob;
}

std::vector<float> restored(const plan& p, const std::vector<u8>& blob,
                            const host::options& o = {}) {
  std::vector<float> y(static_cast<std::size_t>(p.num_elements()));
  EXPECT_TRUE(host::decompress(p, blob, y, key, o).ok());
  return y;
}

plan with_window(const extents& window) {
  codec c;
  c.window = window;
  return *plan::make(c, {6, 5, 28, 32});
}

TEST(Snippets, BlockMinMax) {
  const auto x = wave(3 * 1000, 37);
  const device_array in(x);
  const device_array<float> out(3);
  row_magnitudes<<<3, 128>>>(in.as<const float>(), 1000, out.as<float>());
  const auto found = out.read_back();
  for (int row = 0; row < 3; ++row) {
    float expected = 0.0f;
    for (int i = 0; i < 1000; ++i)
      expected = std::max(expected, std::abs(x[std::size_t(row * 1000 + i)]));
    EXPECT_EQ(found[std::size_t(row)], expected);
  }
}

TEST(Snippets, LoadTile) {
  auto x = wave(length, 37);
  const device_array values(x);
  relu_in_place<<<1, 64>>>(values.as<float>(), length);
  for (float& value : x) value = std::max(value, 0.0f);
  EXPECT_EQ(values.read_back(), x);
}

TEST(Snippets, StoreTileAs) {
  const auto x = wave(length, 37);
  std::vector<u16> halves;
  std::vector<u16> expected;
  for (const float value : x) {
    halves.push_back(f16_nearest(value));
    expected.push_back(bf16_nearest(0.3f * value));  // exact in f16
  }
  const device_array in(halves);
  const device_array<u16> out(expected.size());
  scale<<<2, 96>>>(in.as<const f16>(), 0.3f, out.as<bf16>(), length);
  EXPECT_EQ(out.read_back(), expected);
}

TEST(Snippets, MapElements) {
  const plan p = with_window({1, 1, 8, 8});
  auto x = wave(p.num_elements(), 37);
  const device_array in(x);
  const device_buffer blob(p.size_bytes());
  const block_layout layout(p);
  ASSERT_EQ(layout.means.path, lfc_path::slots);
  compress_squares<<<layout.num_blocks(), layout.num_threads(), layout.shared_bytes()>>>(
      layout, in.as<const float>(), blob.data(), key);
  for (float& value : x) value *= value;
  EXPECT_EQ(blob.bytes(), compressed(p, x));
}

TEST(Snippets, StoreCodesAndLoadCodes) {
  const auto x = wave(length, 37);
  const plan p = *plan::make_codes(1, {length});
  std::vector<u8> codes;
  std::vector<float> magnitudes;
  for (const float value : x) {
    codes.push_back(value < 0.0f);
    magnitudes.push_back(std::abs(value));
  }
  std::vector<u8> expected(static_cast<std::size_t>(p.size_bytes()));
  ASSERT_TRUE(host::pack(p, codes, expected).ok());
  const device_array in(x);
  const device_buffer blob(p.size_bytes());
  const device_array y(magnitudes);
  pack_signs<<<2, 64>>>(blob_layout(p), in.as<const float>(), blob.data());
  negate_by_signs<<<1, 128>>>(blob_layout(p), blob.data(), y.as<float>());
  EXPECT_EQ(blob.bytes(), expected);
  EXPECT_EQ(y.read_back(), x);
}

TEST(Snippets, CompressTile) {
  auto x = wave(length, 37);
  const auto other = wave(length, 11);
  const plan p = *plan::make({}, {length});
  const device_array a(x);
  const device_array b(other);
  const device_buffer blob(p.size_bytes());
  compress_sum<<<1, 96>>>(blob_layout(p), a.as<const float>(), b.as<const float>(), blob.data(),
                          key);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += other[i];
  EXPECT_EQ(blob.bytes(), compressed(p, x));
}

TEST(Snippets, CompressRotatedTileAndLoadRotatedTile) {
  auto x = wave(length, 37);
  codec c;
  c.coding = coding::rotated;
  const plan p = *plan::make(c, {length});
  const device_array in(x);
  const device_buffer blob(p.size_bytes());
  const device_array<float> y(x.size());
  compress_rotated_squares<<<2, 128>>>(blob_layout(p), in.as<const float>(), blob.data(), key);
  restore_rotated<<<2, 128>>>(blob_layout(p), blob.data(), y.as<float>(), key);
  for (float& value : x) value *= value;
  EXPECT_EQ(blob.bytes(), compressed(p, x));
  EXPECT_EQ(y.read_back(), restored(p, blob.bytes()));
}

TEST(Snippets, CompressPositivesTile) {
  const auto x = wave(length, 37);
  const auto other = wave(length, 11);
  codec c;
  c.coding = coding::positives;
  const plan p = *plan::make(c, {length});
  const device_array a(x);
  const device_array b(other);
  const device_buffer blob(p.size_bytes());
  const device_array<float> y(x.size());
  relu_of_sum<<<2, 128>>>(blob_layout(p), a.as<const float>(), b.as<const float>(), y.as<float>(),
                          blob.data(), key);
  auto sum = x;
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] += other[i];
  EXPECT_EQ(blob.bytes(), compressed(p, sum));
  for (float& value : sum) value = value > 0 ? value : 0.0f;
  EXPECT_EQ(y.read_back(), sum);
}

TEST(Snippets, NormaliseTileAndDenormaliseTile) {
  const auto x = wave(length, 37);
  const plan p = *plan::make({}, {length});
  const std::vector<float> mean = {0.5f, -1.0f, 2.0f};
  const std::vector<float> inverse = {2.0f, 0.75f, 0.3f};
  const device_array in(x);
  const device_array means(mean);
  const device_array inverses(inverse);
  const device_buffer blob(p.size_bytes());
  const device_array<float> y(x.size());
  for (const i64 extent : {1, 64, 100}) {
    const statistics_map given({means.as<const float>(), inverses.as<const float>(), 3, extent});
    compress_normalised<<<2, 128>>>(blob_layout(p), given, in.as<const float>(), blob.data(), key);
    restore_normalised<<<2, 128>>>(blob_layout(p), given, blob.data(), y.as<float>());
    host::options o;
    o.statistics = {mean.data(), inverse.data(), 3, extent};
    EXPECT_EQ(blob.bytes(), compressed(p, x, o));
    EXPECT_EQ(y.read_back(), restored(p, blob.bytes(), o));
  }
}

TEST(Snippets, BlockCompressAndBlockDecompressAndPoolCells) {
  for (const extents& window : {extents{}, extents{1, 1, 1, 8}, extents{1, 1, 8, 8},
                                extents{1, 1, 8, 1}, extents{1, 1, 16, 16}}) {
    const plan p = with_window(window);
    const auto x = wave(p.num_elements(), 37);
    const device_array in(x);
    const device_array<float> copy(x.size());
    const device_buffer blob(p.size_bytes());
    const device_array<float> y(x.size());
    launch(p, in.as<const float>(), copy.as<float>(), blob.data());
    const block_layout layout(p);
    with_path(layout.means.path, [&](auto path) {
      decompress_scaled<path><<<layout.num_blocks(), layout.num_threads(), layout.shared_bytes()>>>(
          layout, blob.data(), 2.0f, y.as<float>());
    });
    EXPECT_EQ(copy.read_back(), x);
    EXPECT_EQ(blob.bytes(), compressed(p, x));
    auto expected = restored(p, blob.bytes());
    for (float& value : expected) value *= 2.0f;
    EXPECT_EQ(y.read_back(), expected);
  }
}

TEST(Snippets, LoadCodedTile) {
  const plan p = *plan::make({}, {length});
  const auto blob = compressed(p, wave(length, 37));
  const device_buffer in(blob);
  const device_array<float> y(length);
  restore<<<2, 64>>>(blob_layout(p), in.data(), y.as<float>());
  EXPECT_EQ(y.read_back(), restored(p, blob));
}

}  // namespace
}  // namespace furl::test
