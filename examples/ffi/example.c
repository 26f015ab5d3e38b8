/* SPDX-FileCopyrightText: 2026 The furl authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * furl from C: compresses an array, restores it with two threads, and shows a refusal. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "furl.h"

static furl_tensor tensor(void* data, uint8_t kind, uint8_t bits, const int64_t* shape,
                          int32_t rank) {
  furl_tensor t = {0};
  t.data = data;
  t.device.type = 1; /* host */
  t.rank = rank;
  t.dtype.kind = kind;
  t.dtype.bits = bits;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

/* Ends the program with the line of text of a call that was refused. */
static void require(int32_t code, const char* text) {
  if (code == FURL_OK) return;
  fprintf(stderr, "%s\n", text);
  exit(1);
}

int main(void) {
  const int64_t shape[2] = {100, 500};
  const int64_t n = 100 * 500;
  char text[FURL_TEXT_BYTES];

  /* Once for a codec and a shape: the plan, and the size of the blob. */
  furl_codec codec;
  furl_codec_init(&codec, sizeof codec);
  codec.bits = 4;
  furl_plan plan;
  require(furl_plan_make(&codec, shape, 2, &plan, text), text);
  furl_sizes sizes = {0};
  sizes.struct_bytes = sizeof sizes;
  require(furl_plan_sizes(&plan, &sizes, text), text);

  float* x = malloc((size_t)n * sizeof *x);
  float* y = malloc((size_t)n * sizeof *y);
  uint8_t* bytes = malloc((size_t)sizes.blob_bytes);
  furl_pool* pool = furl_pool_create(2);
  if (x == NULL || y == NULL || bytes == NULL || pool == NULL) return 1;
  for (int64_t i = 0; i < n; ++i) x[i] = (float)sin(0.01 * (double)i);

  /* For each tensor: compress it in the forward pass, with a key of its own, and restore it in the
   * backward pass. */
  const furl_tensor of_x = tensor(x, 2, 32, shape, 2);
  const furl_tensor of_y = tensor(y, 2, 32, shape, 2);
  const furl_tensor blob = tensor(bytes, 1, 8, &sizes.blob_bytes, 1);
  furl_options options = {0};
  options.struct_bytes = sizeof options;
  options.pool = pool;
  const uint64_t seed = 1, offset = 0;
  require(furl_compress(&plan, &of_x, &blob, seed, offset, &options, text), text);
  require(furl_decompress(&plan, &blob, &of_y, seed, offset, &options, text), text);

  double largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = fmax(largest, fabs((double)y[i] - (double)x[i]));
  printf("%ld floats in %ld bytes, largest error %.3f\n", (long)n, (long)sizes.blob_bytes, largest);

  codec.bits = 9;
  const int32_t code = furl_plan_make(&codec, shape, 2, &plan, text);
  printf("refused with code %d: %s\n", (int)code, text);

  furl_pool_destroy(pool);
  free(bytes);
  free(y);
  free(x);
  return code == FURL_OUT_OF_RANGE && largest > 0 && largest < 0.14 ? 0 : 1;
}
