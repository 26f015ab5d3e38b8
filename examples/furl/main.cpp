// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// furl: shows what a codec does to activations, and makes and undoes blobs in files.

#include <cstdio>
#include <exception>
#include <map>
#include <new>
#include <string>

#include "arguments.hpp"
#include "commands.hpp"
#include "failure.hpp"

namespace furl::cli {
namespace {

constexpr const char* usage =
    R"(usage: furl COMMAND --OPTION VALUE...      (also --OPTION=VALUE, in any order)

  furl inspect X.npy                        what codecs cost and do to a tensor: a table
  furl compress --in X --out BLOB           raw values to a blob
  furl decompress --in BLOB --out Y         a blob to raw values
  furl decompress-add --in BLOB --inout Y   adds the values of a blob to raw values
  furl pack --in CODES --out BLOB           masks and small integers, one byte each, to a blob
  furl unpack --in BLOB --out CODES         and back
  furl help

Files are raw and little-endian, without any header; "-" is the standard input or output. inspect
reads what numpy.save writes (f4, f2, bfloat16; with --dtype bf16 or f16 the bits in i2, u2, V2),
or raw files with --shape.

tensor   --shape 2,3,28,28     needed, but for .npy; also [2,3], (2,3); scalar or '' for one value
         --dtype T             f32 (default), f16, bf16: of what compress and inspect read
         --out-dtype T         likewise: of what decompress and decompress-add write
codec    --bits B              1..8, of a code (default 2; pack and unpack need it)
         --widths FILE         instead of --bits: a width for each 1024 elements, one byte each
         --group G             32, 64, 128, 256 (default), 512 or 1024
         --meta M              bf16 (default), f32
         --coding C            min-max (default), rotated (1..4 bits, the other defaults)
         --rounding R          stochastic (default), nearest, dithered
         --window 1,1,8,8      elements per cell, or none (default)
random   --seed S  --offset O  0..2^64-1, also 0x... (default 0); each compression takes another
engine   --device D            host (default), cuda
         --threads N           1..1024 (default 1), of the host; the result depends on neither

decompress needs the shape and codec that compress had; with --coding rotated or --rounding
dithered also its seed and offset, of which one must be given. Otherwise dtype, rounding, seed and
offset may be given to it, too, and do nothing. inspect shows several codecs, or the one given;
for rotated codes also the scales that blocks of 256 elements have, and how many of these are
zeros or poisoned by a NaN, an infinity or an overflow.

Exit status: 0; 1 if a file cannot be read or written or has the wrong size, or CUDA fails or finds
no device; 2 for bad usage, a codec and shape that do not go together, or --device cuda in a build
without CUDA. Then one line says why, and no file has changed.
)";

void run(const arguments& given) {
  if (given.wants_help()) {
    std::fputs(usage, stdout);
    return;
  }
  if (given.command().empty()) {
    std::fputs(usage, stdout);
    throw bad_usage("no command given");
  }
  static const std::map<std::string, void (*)(const arguments&)> commands = {
      {"inspect", inspect},
      {"compress", compress},
      {"decompress", decompress},
      {"decompress-add", decompress_add},
      {"pack", pack},
      {"unpack", unpack}};
  commands.at(given.command())(given);
}

/// One line, whatever is in it.
int fail(exit_status status, std::string why) {
  for (char& c : why)
    if (static_cast<unsigned char>(c) < ' ') c = '?';
  std::fprintf(stderr, "furl: %s\n", why.c_str());
  return static_cast<int>(status);
}

int run_guarded(int count, const char* const* texts) {
  try {
    run(arguments(count, texts));
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw bad_file("standard output", "cannot be written");
    return static_cast<int>(exit_status::success);
  } catch (const failure& f) {
    return fail(f.status(), f.what());
  } catch (const std::bad_alloc&) {
    return fail(exit_status::failed, "not enough memory");
  } catch (const std::exception& e) {
    return fail(exit_status::failed, e.what());
  }
}

}  // namespace
}  // namespace furl::cli

int main(int argc, char** argv) {
  return furl::cli::run_guarded(argc, argv);
}
