/* SPDX-FileCopyrightText: 2026 The furl authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * furl for everything that can call C: plans, compression and masks, in host and in device memory.
 *
 * A function returns FURL_OK, or why it refuses its arguments, one of furl_error. Then it has
 * written nothing, but for a line of text: which argument is wrong, its value and the limit, such
 * as "codec.bits is 9: must be 1..8". `text` is where that goes, FURL_TEXT_BYTES, or NULL. Nothing
 * is thrown, no state is kept between calls, and any number of threads may call at once. Memory is
 * allocated by furl_pool_create, and for texts.
 *
 * Tensors are DLPack's: a furl_tensor has the fields of a DLTensor in their order, so that a
 * pointer to one serves. All tensors of a call lie in the same memory: that of the host (kDLCPU or
 * kDLCUDAHost), or, if the library was built with CUDA, that of one device (kDLCUDA or
 * kDLCUDAManaged). There, work goes to furl_options.stream, and no call waits for it: the memory
 * must last until the stream has done it. Elements are row-major without gaps. Their number is that
 * of the plan's shape; the tensor's own shape may be another. A blob is a tensor of bytes, at least
 * furl_sizes.blob_bytes of them. On the host arrays and blobs may lie at any address; on a device a
 * blob is aligned to 16 bytes, an array to its elements. What a call writes must not share bytes
 * with what it reads, unless it says so. Without elements `data` may be NULL.
 *
 * Values are never refused: a group that holds a NaN or an infinity comes back as NaN, others do
 * not. Nor is a blob checked: other bytes than those of compress, or another key, give other
 * values, but no call touches memory beyond its tensors.
 */
#ifndef FURL_H
#define FURL_H

#include <stdint.h>

#if defined(__GNUC__)
#define FURL_API __attribute__((visibility("default")))
#else
#define FURL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { FURL_TEXT_BYTES = 256 };

typedef enum furl_error {
  FURL_OK,
  FURL_OUT_OF_RANGE,
  FURL_NULL_POINTER,
  FURL_MISALIGNED,
  FURL_WRONG_SIZE,
  FURL_OVERLAP, /* input and output share bytes */
  FURL_WRONG_PLAN,
  FURL_CORRUPT, /* bytes that are no plan */
  FURL_NEWER_FORMAT,
  FURL_OUT_OF_MEMORY,
  FURL_WRONG_MEMORY,
  FURL_CUDA /* a call of the CUDA runtime failed: only then may work have begun */
} furl_error;

typedef enum furl_dtype { FURL_F32, FURL_F16, FURL_BF16 } furl_dtype;
typedef enum furl_rounding {
  FURL_STOCHASTIC, /* at random, right on average */
  FURL_NEAREST,    /* with a bias, and without a key */
  FURL_DITHERED /* the same blob as FURL_STOCHASTIC, restored with half the variance by its key */
} furl_rounding;
typedef enum furl_coding {
  FURL_MIN_MAX,  /* steps between the least and the largest element of a group (ActNN) */
  FURL_ROTATED,  /* levels of a normal law, after a random rotation of every 256 elements */
  FURL_POSITIVES /* the mask of x > 0, and rotated codes of what is above 0: see furl_relu */
} furl_coding;

/* What to do with a tensor. Structs may get more fields behind those that they have. struct_bytes
 * is the size of the caller's: fields that it lacks have their defaults, and fields that the
 * library does not know must be 0. So a program and a library of different ages work together.
 * Below, the default stands behind the colon. */
typedef struct furl_codec {
  uint32_t struct_bytes; /* sizeof(furl_codec) */
  int32_t bits;          /* of a code, 1..8: 2 */
  int32_t group;         /* elements with one minimum and step, 32, 64, 128 ... 1024: 256 */
  int32_t meta;          /* furl_dtype of minima, steps and means, or FURL_F32: FURL_BF16 */
  int32_t rounding;      /* furl_rounding: FURL_STOCHASTIC */
  int32_t coding;        /* furl_coding: FURL_MIN_MAX */
  int32_t by_lines;      /* 1: no group holds elements of two lines, along the last dimension: 0 */
  int32_t window_rank;   /* dimensions of window, as many as the shape has; no window: 0 */
  int32_t window[8];     /* elements along each dimension whose mean is subtracted first */
} furl_codec;
/* FURL_ROTATED and FURL_POSITIVES want 1..4 bits and the other defaults; only the former may have a
 * window. A window has 1..64 elements along a dimension, more than 1 along at most three, which are
 * neighbours, and at most 4096 together. by_lines wants FURL_MIN_MAX and no window. */

/* All that is known before the data, as 96 bytes: they can be copied, compared, and kept beside a
 * blob, in a file too. */
typedef struct furl_plan {
  uint8_t bytes[96];
} furl_plan;

typedef struct furl_sizes {
  uint32_t struct_bytes; /* sizeof(furl_sizes), written by the caller */
  int32_t needs_key;     /* 1: decompress needs the seed and the offset of compress */
  int64_t num_elements;  /* of the tensor */
  int64_t blob_bytes;
} furl_sizes;

typedef struct furl_tensor {
  void* data;
  struct {
    int32_t type; /* 1: host, 2: CUDA device, 3: pinned host, 13: managed */
    int32_t id;
  } device;
  int32_t rank;
  struct {
    uint8_t kind; /* 0: int, 1: uint, 2: float, 4: bfloat, 6: bool */
    uint8_t bits;
    uint16_t lanes; /* 1 */
  } dtype;
  const int64_t* shape;
  const int64_t* strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;   /* from data to the first element */
} furl_tensor;

typedef struct furl_pool furl_pool; /* threads for calls on host memory */

typedef struct furl_options {
  uint32_t struct_bytes;      /* sizeof(furl_options) */
  uint32_t reserved;          /* 0 */
  furl_pool* pool;            /* host memory: NULL for the calling thread alone */
  void* stream;               /* device memory: a cudaStream_t of that device */
  const uint64_t* device_key; /* device memory: {seed, offset} there, aligned to 8 bytes */
} furl_options;

/* Threads, the calling one among them: 1 or less starts none. They serve one call at a time, others
 * wait. After a fork, the child works in its calling thread. NULL: the system refuses a thread. */
FURL_API furl_pool* furl_pool_create(int32_t num_threads);
/* pool: no call may be using it; or NULL. Before the library is unloaded. */
FURL_API void furl_pool_destroy(furl_pool* pool);

/* Writes the defaults and struct_bytes, which is sizeof(furl_codec). codec: not NULL. */
FURL_API void furl_codec_init(furl_codec* codec, uint32_t struct_bytes);

/* For compress and decompress. codec: NULL for the defaults. shape: `rank` sizes, outermost first,
 * at most 8. */
FURL_API int32_t furl_plan_make(const furl_codec* codec, const int64_t* shape, int32_t rank,
                                furl_plan* plan, char* text);
/* For pack and unpack, and for the mask of a ReLU, which has 1 bit. */
FURL_API int32_t furl_plan_make_codes(int32_t bits, const int64_t* shape, int32_t rank,
                                      furl_plan* plan, char* text);
FURL_API int32_t furl_plan_sizes(const furl_plan* plan, furl_sizes* sizes, char* text);

/* Compresses x (f32, f16 or bf16) into the first blob_bytes of the blob. Rounding at random and
 * rotations draw from seed and offset: give each tensor and step another offset, or the same errors
 * repeat. options: NULL for the calling thread, or the default stream of the current device. */
FURL_API int32_t furl_compress(const furl_plan* plan, const furl_tensor* x, const furl_tensor* blob,
                               uint64_t seed, uint64_t offset, const furl_options* options,
                               char* text);
/* Restores a blob as f32, f16 or bf16, whatever x was. Seed and offset are those of compress; plans
 * without furl_sizes.needs_key ignore them. */
FURL_API int32_t furl_decompress(const furl_plan* plan, const furl_tensor* blob,
                                 const furl_tensor* y, uint64_t seed, uint64_t offset,
                                 const furl_options* options, char* text);
/* Adds what decompress restores to y; a sum is made in f32, and rounded once to y's type. */
FURL_API int32_t furl_decompress_add(const furl_plan* plan, const furl_tensor* blob,
                                     const furl_tensor* y, uint64_t seed, uint64_t offset,
                                     const furl_options* options, char* text);

/* Masks and small integers, one per byte (bool, int8 or uint8), exactly: of each byte the lowest
 * bits, as many as the plan has. */
FURL_API int32_t furl_pack(const furl_plan* plan, const furl_tensor* codes, const furl_tensor* blob,
                           const furl_options* options, char* text);
FURL_API int32_t furl_unpack(const furl_plan* plan, const furl_tensor* blob,
                             const furl_tensor* codes, const furl_options* options, char* text);

/* y = max(x, 0), and a blob for the backward pass. By a plan for codes of 1 bit it is the mask of
 * x > 0; by one with FURL_POSITIVES it also has codes of y, which decompress restores with the seed
 * and the offset given here. y has the type of x, and may be x. */
FURL_API int32_t furl_relu(const furl_plan* plan, const furl_tensor* x, const furl_tensor* y,
                           const furl_tensor* blob, uint64_t seed, uint64_t offset,
                           const furl_options* options, char* text);
/* out = g where x > 0, else 0, from the blob of either plan. out has g's type, and may be g. */
FURL_API int32_t furl_relu_backward(const furl_plan* plan, const furl_tensor* blob,
                                    const furl_tensor* g, const furl_tensor* out,
                                    const furl_options* options, char* text);

#ifdef __cplusplus
}
#endif

#endif
