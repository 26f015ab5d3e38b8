// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// A run of layers that shares one kept activation (ARA, auxiliary residual activation: Woo and
// Jeon, ICLR 2023). The activation before the run is added to the input of each of its layers, and
// is all that they keep: the gradients of their weights are made with it. Kept folded, it is added
// by decompress_add, without an array of it in between.
//   residual [STEPS]: how many steps to train, of at most 468 (default)

#include <charconv>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fold_store.hpp"
#include "network.hpp"
#include "options.hpp"
#include "report.hpp"
#include "training.hpp"

namespace {

using trainer::tape;
using trainer::tensor;
using trainer::variable;

constexpr int width = 256;

/// A linear layer, a run of four that each get the sum of their predecessor's activation and the
/// first one's, and a classifier.
class run_of_layers final : public trainer::model {
 public:
  /// shares : whether the run keeps what is added, in place of an input for each of its layers.
  run_of_layers(bool shares, std::mt19937_64& random)
      : shares_(shares), first_(trainer::image_pixels, width), last_(width, trainer::num_classes) {
    run_.reserve(4);
    for (int i = 0; i < 4; ++i) run_.emplace_back(width, width);
    for (trainer::linear_layer* layer : layers()) trainer::randomize(layer->weight, random);
  }

  variable logits(tape& t, const tensor& images) override {
    const variable before = rectify(t, linear(t, {images}, first_));
    const variable x =
        shares_ ? go_through(t, before, begin_run(t, before)) : go_through(t, before, before);
    return linear(t, x, last_);
  }

  std::vector<trainer::parameter*> parameters() override {
    std::vector<trainer::parameter*> all;
    for (trainer::linear_layer* layer : layers()) {
      all.push_back(&layer->weight);
      all.push_back(&layer->bias);
    }
    return all;
  }

 private:
  template <class Added>
  variable go_through(tape& t, variable x, const Added& added) {
    for (trainer::linear_layer& layer : run_) x = rectify(t, linear(t, add(t, x, added), layer));
    return x;
  }

  std::vector<trainer::linear_layer*> layers() {
    std::vector<trainer::linear_layer*> all{&first_, &last_};
    for (trainer::linear_layer& layer : run_) all.push_back(&layer);
    return all;
  }

  const bool shares_;
  trainer::linear_layer first_;
  std::vector<trainer::linear_layer> run_;
  trainer::linear_layer last_;
};

void run(int steps) {
  const trainer::options defaults = trainer::parse_options({});
  trainer::thread_pool pool(defaults.threads);
  const auto store = trainer::make_host_store(pool);
  const trainer::dataset data = trainer::read_dataset(defaults.data);
  trainer::run_settings settings;
  settings.most_steps = steps;
  std::vector<trainer::run_result> results;
  for (const char* const name : {"none", "flat2"}) {
    trainer::scheme s = trainer::scheme_named(name);
    const std::string how = s.title;
    for (const bool shares : {false, true}) {
      s.title = how + (shares ? ", shared" : "");
      trainer::progress_bar bar(s.title);
      results.push_back(trainer::train(
          data,
          [=](std::mt19937_64& random) { return std::make_unique<run_of_layers>(shares, random); },
          s, settings, pool, *store,
          [&](int done, int all, float loss) { bar.show(done, all, loss); }));
    }
  }
  std::cout << trainer::to_table(results);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    int steps = 0;
    const char* const text = count == 2 ? arguments[1] : "468";
    const char* const end = text + std::strlen(text);
    const auto [stop, failure] = std::from_chars(text, end, steps);
    if (count > 2 || failure != std::errc() || stop != end || steps < 1) {
      std::cerr << "residual: usage: residual [STEPS]\n";
      return 2;
    }
    run(steps);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "residual: " << e.what() << '\n';
    return 1;
  }
}
