// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where furl meets the trainer: the pair of hooks, save and load, that every operation of the tape
// keeps its tensors with between the forward and the backward pass. Any framework that has such a
// pair can do the same.

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "bit_budget.hpp"
#include "fold_store.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/plan.hpp"
#include "tensor.hpp"

namespace trainer {

/// What is done to activations, and to some of them beside it. Masks and window indices are packed
/// in all but the first.
enum class method {
  keep,          // nothing
  fold,          // the codec
  mixed_bits,    // the codec with codec.bits on average, and more where gradients need them (ActNN)
  given_ranges,  // the codec, with ranges that are known beforehand where there are any (BLPA)
  few_bit,       // the codec, and 3 bits for the derivative of a GELU (Few-bit backward)
  signs          // the codec, and signs in place of what enters matrix products (ASA)
};

/// A way to keep activations.
struct scheme {
  std::string name;   // on the command line
  std::string title;  // in the table
  trainer::method method = method::keep;
  furl::codec codec = {};  // if it folds

  bool folds() const { return method != method::keep; }
};

/// No compression; 8, 4 and 2 bits with a range per group (ActNN's codec); 2 bits on top of the
/// means of 8 x 8 cells (DIVISION's codec); rotated codes of 2 and 1 bits (EDEN's) on top of such
/// means; the other methods.
std::vector<scheme> all_schemes();

/// ActNN's codec, the same decoded with dither, DIVISION's and rotated codes on the same means, of
/// 1 to 4 bits: for comparisons of gradients.
std::vector<scheme> schemes_by_bits();

/// Throws std::invalid_argument if there is none.
scheme scheme_named(const std::string& name);

/// Loads the mask of an activation: 0 where it is 0.
using mask_loader = std::function<codes()>;

/// What is kept of a tensor: itself or its folded form. Copies share it, it can be loaded any
/// number of times, and it is freed with the last copy.
struct saved_tensor {
  using content = std::variant<buffer<float>, std::unique_ptr<const folded>>;
  trainer::shape shape;
  std::shared_ptr<const content> kept;
  mask_loader mask = {};  // for codecs that do not keep zeros
};

/// The same for bytes.
struct saved_codes {
  using content = std::variant<codes, std::unique_ptr<const folded>>;
  index size = 0;
  std::shared_ptr<const content> kept;
};

/// The hooks, for one training run; the store says where folded tensors live. Draws random numbers
/// from a stream of its own, addressed by (seed, number of the compression): no two compressions
/// share random bits, and the trainer's random state is not touched.
class saver {
 public:
  saver(const scheme& kept_as, fold_store& store, u64 seed)
      : scheme_(kept_as), store_(store), seed_(seed), budget_(kept_as.codec.bits) {}

  /// To be called before each forward pass.
  void begin_step();

  /// Keeps an activation as the scheme says: for operations whose gradient survives a small error
  /// of zero mean. An activation saved by several operations is kept and counted once.
  /// channel_ranges : lo and hi of each channel, as far as they are known without a look at x.
  /// mask : for the backward pass, if there is one that is kept anyway: zeros come back as zeros.
  saved_tensor save(const tensor& x, const buffer<float>& channel_ranges = {},
                    const mask_loader& mask = {});
  /// Keeps a level of the codebook, which must live on, in place of each element.
  saved_tensor save_levels(const tensor& x, const furl::codebook& book);
  /// Keeps integers below 2^bits, exact: ReLU masks and window indices of max pooling.
  saved_codes save(const codes& c, int bits);
  /// Keeps what must pass through as it is: log-probabilities, batch statistics, labels.
  saved_tensor save_exact(const tensor& x);
  saved_codes save_exact(const codes& c);

  /// Values that are right on average. Those of a ReLU may come back below 0: to cut them off would
  /// move the average.
  tensor load(const saved_tensor& s) const;
  codes load(const saved_codes& s) const;
  /// Adds what was kept of a tensor to another.
  void load_add(const saved_tensor& s, const tensor& sum) const;
  /// Multiplies by what save_levels kept.
  void multiply_by_levels(const saved_tensor& s, const tensor& gradient) const;

  /// The scheme's method: for operations that other methods than the codec change.
  trainer::method method() const { return scheme_.method; }
  /// For mixed widths: an error of variance v in each element of what was kept adds
  /// sensitivity() * v to the variance of a gradient. See bit_budget.
  template <class Function>
  void report(const saved_tensor& s, const Function& sensitivity) {
    if (scheme_.method == method::mixed_bits) add_report(s, sensitivity());
  }

  /// Bytes kept since begin_step, those of save_exact included.
  u64 saved_bytes() const { return saved_bytes_; }
  /// The same without compression: floats, and a byte per mask bit or window index. (Frameworks
  /// keep more: PyTorch 4 bytes per ReLU output and 8 per window index.)
  u64 plain_bytes() const { return plain_bytes_; }

 private:
  struct known_activation {
    // Not the address: it may serve another array by now. A weak pointer cannot take the one for
    // the other, and does not keep the uncompressed values alive either.
    std::weak_ptr<float[]> original;
    std::weak_ptr<const saved_tensor::content> kept;
  };

  std::shared_ptr<const saved_tensor::content> find(const tensor& x) const;
  std::unique_ptr<const folded> fold(const tensor& x, const buffer<float>& channel_ranges);
  saved_tensor keep(const tensor& x, std::unique_ptr<const folded> small);
  void add_report(const saved_tensor& s, double sensitivity);
  void count(u64 saved, u64 plain);

  const scheme scheme_;
  fold_store& store_;
  const u64 seed_;
  u64 num_compressions_ = 0;
  u64 saved_bytes_ = 0;
  u64 plain_bytes_ = 0;
  std::vector<known_activation> known_;  // in the order saved
  bit_budget budget_;
};

}  // namespace trainer
