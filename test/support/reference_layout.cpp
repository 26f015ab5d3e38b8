// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Sizes, offsets and cells of the reference, from ceilings and coordinates.

#include "support/reference.hpp"

namespace furl::test::reference {
namespace {

u64 ceil_div(u64 a, u64 b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

bool has_window(const problem& p) {
  for (int d = 0; d < p.codec.window.rank; ++d)
    if (p.codec.window.size[d] > 1) return true;
  return false;
}

std::vector<i64> coordinates(const problem& p, i64 index) {
  std::vector<i64> out(at(p.shape.rank));
  for (int d = p.shape.rank - 1; d >= 0; --d) {
    out[at(d)] = index % p.shape.size[d];
    index /= p.shape.size[d];
  }
  return out;
}

int bits_of_tile(const problem& p, i64 tile) {
  return p.widths.empty() ? p.codec.bits : p.widths[at(tile)];
}

i64 num_elements(const problem& p) {
  for (int d = 0; d < p.shape.rank; ++d)
    if (p.shape.size[d] == 0) return 0;  // whatever the others are: their product may overflow
  i64 n = 1;
  for (int d = 0; d < p.shape.rank; ++d) n *= p.shape.size[d];
  return n;
}

layout layout_of(const problem& p) {
  layout out;
  u64 n = u64(num_elements(p));
  if (p.codec.by_lines && n > 0) {
    const u64 width = p.shape.rank == 0 ? 1 : u64(p.shape.size[p.shape.rank - 1]);
    n = n / width * ceil_div(width, u64(p.codec.group)) * u64(p.codec.group);
  }
  const u64 meta_size = p.codec.meta == dtype::f32 ? 4 : 2;
  for (i64 t = 0; t < i64(ceil_div(n, 1024)); ++t) {
    out.tile.push_back(out.meta);
    out.meta += 128 * u64(bits_of_tile(p, t));
  }
  const u64 groups = ceil_div(n, u64(p.codec.group));
  const u64 tiles = ceil_div(n, 1024);
  const u64 metadata = p.codec.coding == coding::rotated     ? 8 * tiles   // four scales
                       : p.codec.coding == coding::positives ? 16 * tiles  // and means
                                                             : groups * 2 * meta_size;
  out.lfc = out.meta + 16 * ceil_div(metadata, 16);
  const u64 cells = n > 0 && has_window(p) ? u64(num_cells(p)) : 0;
  out.size = out.lfc + 16 * ceil_div(cells * meta_size, 16);
  if (p.codec.coding == coding::positives) out.size += 128 * tiles;  // the mask
  return out;
}

i64 num_cells(const problem& p) {
  i64 count = 1;
  for (int d = 0; d < p.shape.rank; ++d)
    count *= i64(ceil_div(u64(p.shape.size[d]), u64(p.codec.window.size[d])));
  return count;
}

i64 cell_of(const problem& p, i64 index) {
  const auto where = coordinates(p, index);
  i64 cell = 0;
  for (int d = 0; d < p.shape.rank; ++d) {
    const i64 window = p.codec.window.size[d];
    cell = cell * i64(ceil_div(u64(p.shape.size[d]), u64(window))) + where[at(d)] / window;
  }
  return cell;
}

}  // namespace furl::test::reference
