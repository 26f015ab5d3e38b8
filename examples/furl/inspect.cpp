// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "commands.hpp"
#include "failure.hpp"
#include "files.hpp"
#include "npy.hpp"
#include "settings.hpp"
#include "statistics.hpp"

namespace furl::cli {
namespace {

struct tensor {
  buffer file;
  u64 data_offset = 0;
  dtype type = dtype::f32;
  extents shape;

  const void* data() const { return file.data() + data_offset; }
};

void check_npy(const npy_header& header, const plan& p, const std::string& path, const tensor& x) {
  if (!in_c_order(header))
    throw bad_file(path, "is in Fortran order: save numpy.ascontiguousarray of it");
  check_size(path, x.file.size() - header.data_offset,
             bytes_of(p.num_elements(), size_bytes(x.type)),
             tensor_text(x.type, x.shape) + " behind the .npy header");
}

tensor read_tensor(const arguments& given, const settings& s) {
  if (given.has("--in") == !given.operands().empty())
    throw bad_usage("inspect takes one file (see furl help)");
  const std::string path = given.has("--in") ? given["--in"] : given.operands()[0];
  tensor x;
  if (given.has("--shape")) {
    const plan p = require(plan::make(s.codec, s.shape));
    x.file = read_exactly(path, bytes_of(p.num_elements(), size_bytes(s.in_type)),
                          "raw " + tensor_text(s.in_type, s.shape));
    x.type = s.in_type;
    x.shape = s.shape;
    return x;
  }
  x.file = read_all(path);
  if (!is_npy(x.file))
    throw bad_file(path, "is no .npy file: say what it holds with --dtype and --shape");
  const npy_header header = read_npy_header(x.file, path);
  const auto type = given.has("--dtype") ? std::optional(s.in_type) : std::nullopt;
  x.type = npy_dtype(header, type, path);
  x.shape = {header.shape.data(), static_cast<int>(header.shape.size())};
  x.data_offset = header.data_offset;
  check_npy(header, require(plan::make(s.codec, x.shape)), path, x);
  return x;
}

/// The usual window for a shape: planes of images, steps of sequences, features.
extents usual_window(const extents& shape) {
  if (shape.rank == 2) return {1, 8};
  if (shape.rank == 3) return {1, 8, 1};
  extents window = shape;
  for (int d = 0; d < shape.rank; ++d) window.size[d] = d < shape.rank - 2 ? 1 : 8;
  return window;
}

std::vector<codec> codecs_to_show(const arguments& given, const settings& s, const extents& shape) {
  for (const char* option : {"--bits", "--group", "--meta", "--coding", "--rounding", "--window"})
    if (given.has(option)) return {s.codec};
  std::vector<codec> list;
  codec c;
  for (const int bits : {8, 4, 3, 2, 1}) {
    c.bits = bits;
    list.push_back(c);
  }
  c.bits = 2;
  c.meta = dtype::f32;
  list.push_back(c);
  c.meta = dtype::bf16;
  c.rounding = rounding::dithered;
  list.push_back(c);
  c.rounding = rounding::stochastic;
  if (shape.rank >= 2) {
    c.window = usual_window(shape);
    list.push_back(c);
    c.window = {};
  }
  c.coding = coding::rotated;
  for (const int bits : {4, 3, 2, 1}) {
    c.bits = bits;
    list.push_back(c);
  }
  return list;
}

using row = std::vector<std::string>;

std::string number(const char* format, double value) {
  if (std::isnan(value)) return "-";
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// 10^9 bytes of the input a second.
std::string speed(u64 bytes, double seconds) {
  return bytes == 0 ? "-" : number("%.2f", double(bytes) / seconds * 1e-9);
}

/// What a codec did to a tensor.
struct inspected {
  row figures;
  std::string scales;  // of rotated codes: a line
  double copy_seconds = 0;
};

std::string scales_text(const plan& p, const buffer& blob) {
  const scales found = scales_of(p, blob.data());
  std::string text = codec_text(p.codec()) + ": " + std::to_string(found.blocks) + " blocks, " +
                     std::to_string(found.zeros) + " of zeros, " + std::to_string(found.poisoned) +
                     " poisoned";
  if (found.largest != 0)
    text += "; scales " + number("%.3g", double(found.smallest)) + " to " +
            number("%.3g", double(found.largest));
  return text;
}

inspected inspect_codec(const codec& c, const tensor& x, const settings& s) {
  const plan p = require(plan::make(c, x.shape));
  const const_values input{x.data(), x.type, p.num_elements()};
  buffer blob(p.size_bytes());
  buffer y(bytes_of(p.num_elements(), size_bytes(dtype::f32)));
  const bytes blob_view{blob.data(), blob.size()};
  require(s.engine->compress(p, input, blob_view, s.key, {}));
  require(s.engine->decompress(p, {blob.data(), blob.size()},
                               {y.data(), dtype::f32, p.num_elements()}, s.key, {}));
  inspected out;
  if (p.is_rotated()) out.scales = scales_text(p, blob);
  const statistics found = compare(p, input, reinterpret_cast<const float*>(y.data()));
  const timings time =
      require(s.engine->measure(p, input, blob_view, {y.data(), x.type, p.num_elements()}, s.key));
  out.copy_seconds = time.copy;
  const u64 size = input.size_bytes();
  const bool some = size > 0;
  out.figures = {codec_text(c),
                 std::to_string(p.size_bytes()),
                 some ? number("%.2f", double(size) / double(p.size_bytes())) : "-",
                 some ? number("%.3f", p.bits_per_value()) : "-",
                 number("%.4g", found.root_mean_square_error),
                 number("%.4g", found.largest_error),
                 number("%.3g", found.bias),
                 some ? number("%.4g%%", 100 * found.poisoned_share) : "-",
                 number("%.6f", found.fidelity),
                 speed(size, time.compress),
                 speed(size, time.decompress)};
  return out;
}

/// The first column to the left, all others to the right.
void print_table(const std::vector<row>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const row& r : rows)
    for (std::size_t i = 0; i < r.size(); ++i) widths[i] = std::max(widths[i], r[i].size());
  for (const row& r : rows) {
    std::string line = r[0] + std::string(widths[0] - r[0].size(), ' ');
    for (std::size_t i = 1; i < r.size(); ++i)
      line += "  " + std::string(widths[i] - r[i].size(), ' ') + r[i];
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace

void inspect(const arguments& given) {
  const settings s = settings_from(given);
  const tensor x = read_tensor(given, s);
  const plan any = require(plan::make(s.codec, x.shape));
  const u64 size = bytes_of(any.num_elements(), size_bytes(x.type));
  double copy_seconds = 1e300;
  std::vector<row> rows = {{"codec", "blob bytes", "ratio", "bits/value", "rms error", "max error",
                            "bias", "poisoned", "1-|x-a|^2/|x|^2", "compress GB/s",
                            "decompress GB/s"}};
  std::string scales;
  for (const codec& c : codecs_to_show(given, s, x.shape)) {
    const inspected found = inspect_codec(c, x, s);
    rows.push_back(found.figures);
    if (!found.scales.empty()) scales += found.scales + '\n';
    copy_seconds = std::min(copy_seconds, found.copy_seconds);
  }
  std::printf("%s, shape %s, elements %lld, bytes %llu\n", name(x.type),
              shape_text(x.shape).c_str(), any.num_elements(), size);
  print_table(rows);
  std::fputs(scales.c_str(), stdout);
  std::printf("memcpy of the input: %s GB/s\n", speed(size, copy_seconds).c_str());
}

}  // namespace furl::cli
