// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Trains the same network from the same weights with its activations kept in several ways, and
// prints what each costs.

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fold_store.hpp"
#include "idx.hpp"
#include "network.hpp"
#include "options.hpp"
#include "report.hpp"
#include "training.hpp"

namespace {

/// Lets the C library keep freed memory for the next step, rather than return it to the system and
/// have it zeroed again: a fifth of the time of a step.
void keep_freed_memory() {
#if defined(M_TRIM_THRESHOLD) && defined(M_MMAP_THRESHOLD)
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

std::unique_ptr<trainer::fold_store> make_store(const trainer::options& o,
                                                trainer::thread_pool& pool) {
  return o.device == trainer::device::cuda ? trainer::make_cuda_store()
                                           : trainer::make_host_store(pool);
}

void run(const trainer::options& o) {
  trainer::thread_pool pool(o.threads);
  const auto store = make_store(o, pool);
  for (const std::string& file : {o.csv, o.gradients})
    if (!file.empty()) trainer::check_writable(file);
  trainer::dataset data = trainer::read_dataset(o.data);
  if (o.test_images > 0 && o.test_images < data.test.size())
    data.test.labels.resize(static_cast<std::size_t>(o.test_images));
  if (o.run.batch > data.training.size())
    throw trainer::usage_error("--batch is " + std::to_string(o.run.batch) + ": there are only " +
                               std::to_string(data.training.size()) + " training images");

  const auto make = [&](bool adds_signs) {
    return [&o, adds_signs](std::mt19937_64& random) {
      return std::make_unique<trainer::network>(o.activation, adds_signs, random);
    };
  };
  if (!o.gradients.empty()) {
    const auto errors = trainer::measure_gradients(data, make(false), trainer::schemes_by_bits(),
                                                   o.run, pool, *store);
    trainer::write_file(o.gradients, trainer::to_csv(errors));
    return;
  }
  std::vector<trainer::run_result> results;
  for (const trainer::scheme& s : o.schemes) {
    trainer::progress_bar bar(s.title);
    results.push_back(
        trainer::train(data, make(s.method == trainer::method::signs), s, o.run, pool, *store,
                       [&](int done, int all, float loss) { bar.show(done, all, loss); }));
  }
  std::cout << trainer::to_table(results) << std::flush;
  if (!o.csv.empty()) trainer::write_file(o.csv, trainer::to_csv(results, o.run));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const trainer::options o = trainer::parse_options({arguments + 1, arguments + count});
    if (o.help) {
      std::cout << trainer::usage();
    } else {
      keep_freed_memory();
      run(o);
    }
    return 0;
  } catch (const trainer::usage_error& e) {
    std::cerr << "train: " << e.what() << '\n';
    return 2;
  } catch (const trainer::no_cuda& e) {
    std::cerr << "train: " << e.what() << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "train: " << e.what() << '\n';
    return 1;
  }
}
