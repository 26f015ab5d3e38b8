// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Trains the same network from the same weights with its activations kept in several ways, and
// prints what each costs.

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "idx.hpp"
#include "options.hpp"
#include "report.hpp"
#include "training.hpp"

namespace {

void run(const trainer::options& o) {
  if (!o.csv.empty()) trainer::check_writable(o.csv);
  trainer::dataset data = trainer::read_dataset(o.data);
  if (o.test_images > 0 && o.test_images < data.test.size())
    data.test.labels.resize(static_cast<std::size_t>(o.test_images));
  if (o.run.batch > data.training.size())
    throw trainer::usage_error("--batch is " + std::to_string(o.run.batch) + ": there are only " +
                               std::to_string(data.training.size()) + " training images");

  trainer::thread_pool pool(o.threads);
  std::vector<trainer::run_result> results;
  for (const trainer::scheme& s : o.schemes) {
    trainer::progress_bar bar(s.title);
    results.push_back(trainer::train(
        data, s, o.run, pool, [&](int done, int all, float loss) { bar.show(done, all, loss); }));
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
      run(o);
    }
    return 0;
  } catch (const trainer::usage_error& e) {
    std::cerr << "train: " << e.what() << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "train: " << e.what() << '\n';
    return 1;
  }
}
