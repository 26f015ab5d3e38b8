// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lines that are filled up to whole groups (FORMAT.md, A15) on the host: which elements the codes
// of a tile belong to.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Neighbouring codes of one line.
struct line_part {
  int at;       // in the tile: the first code
  int codes;    // how many
  int present;  // of these, the first, which have elements
  i64 element;  // of the tensor: that of the first code
  i64 last;     // likewise: the last of the line, for codes without an element
};

/// Calls function(line_part) for the lines that have codes in a tile of `count` codes.
template <class Function>
void for_each_line_part(const plan& p, i64 tile, int count, const Function& function) {
  const i64 width = p.line_elements();
  for (int at = 0; at < count;) {
    const i64 code = tile * tile_elements + at;
    const i64 begin = code / p.line_codes() * width;
    const i64 column = code % p.line_codes();
    const int codes = int((::std::min)(i64(count - at), p.line_codes() - column));
    const int present = int(::std::clamp<i64>(width - column, 0, codes));
    function(line_part{at, codes, present, begin + column, begin + width - 1});
    at += codes;
  }
}

/// The elements of a tile as floats. Codes without one repeat the last of their line, which widens
/// no group; so do those beyond the last code.
template <class T>
void load_lines(const plan& p, i64 tile, int count, const void* x, float* out) {
  for_each_line_part(p, tile, count, [&](const line_part& part) {
    if (part.present > 0) load_floats<T>(x, part.element, part.present, out + part.at);
    ::std::fill(out + part.at + part.present, out + part.at + part.codes,
                to_f32(load_at<T>(x, part.last)));
  });
  ::std::fill(out + count, out + tile_elements, out[count - 1]);
}

/// Makes the codes of a tile 0 that have no element.
inline void clear_filled(const plan& p, i64 tile, int count, u8* codes) {
  for_each_line_part(p, tile, count, [&](const line_part& part) {
    ::std::fill(codes + part.at + part.present, codes + part.at + part.codes, u8(0));
  });
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
