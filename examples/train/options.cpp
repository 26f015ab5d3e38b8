// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <thread>

namespace trainer {
namespace {

u64 number(const std::string& option, const std::string& text, u64 least, u64 most) {
  u64 value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || value < least || value > most)
    throw usage_error(option + " is \"" + text + "\": must be a number of " +
                      std::to_string(least) + ".." + std::to_string(most));
  return value;
}

int small_number(const std::string& option, const std::string& text, u64 least, u64 most) {
  return static_cast<int>(number(option, text, least, most));
}

/// All that make sense with the activation function, or the one of them that is named.
std::vector<scheme> schemes_named(const std::string& name, activation function) {
  std::vector<scheme> found;
  std::string names = "all";
  for (const scheme& s : all_schemes()) {
    if (s.method == method::few_bit && function != activation::gelu) {
      if (s.name == name) throw usage_error("--codec " + name + " needs --activation gelu");
      continue;
    }
    if (s.name == name || name == "all") found.push_back(s);
    names += ", " + s.name;
  }
  if (found.empty()) throw usage_error("--codec is \"" + name + "\": must be one of " + names);
  return found;
}

activation activation_named(const std::string& name) {
  if (name == "relu") return activation::relu;
  if (name == "gelu") return activation::gelu;
  throw usage_error("--activation is \"" + name + "\": must be relu or gelu");
}

device device_named(const std::string& name) {
  if (name == "host") return device::host;
  if (name == "cuda") return device::cuda;
  throw usage_error("--device is \"" + name + "\": must be host or cuda");
}

void set(options& o, const std::string& option, const std::string& value) {
  if (option == "--codec") {
    o.codec = value;
  } else if (option == "--activation") {
    o.activation = activation_named(value);
  } else if (option == "--epochs") {
    o.run.epochs = small_number(option, value, 1, 1000);
  } else if (option == "--batch") {
    o.run.batch = small_number(option, value, 2, 10000);
  } else if (option == "--seed") {
    o.run.seed = number(option, value, 0, std::numeric_limits<u64>::max());
  } else if (option == "--threads") {
    o.threads = small_number(option, value, 1, 256);
  } else if (option == "--device") {
    o.device = device_named(value);
  } else if (option == "--steps") {
    o.run.most_steps = small_number(option, value, 1, 1'000'000'000);
  } else if (option == "--test-images") {
    o.test_images = small_number(option, value, 1, 1'000'000);
  } else if (option == "--data" || option == "--csv" || option == "--gradients") {
    if (value.empty()) throw usage_error(option + " must not be empty");
    (option == "--data" ? o.data : option == "--csv" ? o.csv : o.gradients) = value;
  } else {
    throw usage_error("no such option: " + option + " (--help lists them)");
  }
}

}  // namespace

std::string usage() {
  return "Trains a small network on Fashion-MNIST with folded activations and compares.\n"
         "  --codec NAME      none, flat8, flat4, flat2, lfc2, rotated2, rotated1, actnn-mixed,\n"
         "                    blpa4, asa, or, with GELU, fewbit (default: all)\n"
         "  --activation F    relu or gelu (default: relu)\n"
         "  --epochs N        passes over the training images (default: 1)\n"
         "  --batch N         images per step (default: 128)\n"
         "  --seed N          of weights, order of images and rounding (default: 1)\n"
         "  --data DIR        folder of the data set (default: that of the Debian package)\n"
         "  --device D        host or cuda: where folded activations are made and kept; does not\n"
         "                    change results (default: host)\n"
         "  --threads N       does not change results (default: as many as the machine has)\n"
         "  --csv FILE        also write the table as comma-separated values\n"
         "  --gradients FILE  in place of all that: write what codecs of 1 to 4 bits do to the\n"
         "                    gradient of one step, as comma-separated values\n"
         "  --steps N         stop each run after N steps (default: no limit)\n"
         "  --test-images N   test on the first N images only (default: all)\n";
}

options parse_options(const std::vector<std::string>& arguments) {
  options o;
  o.threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 256);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    if (option == "--help") {
      o.help = true;
      return o;
    }
    const std::size_t equals = option.find('=');
    if (equals != std::string::npos) {
      set(o, option.substr(0, equals), option.substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      set(o, option, arguments[++i]);
    } else {
      throw usage_error(option + ": no such option, or its value is missing (--help lists them)");
    }
  }
  o.schemes = schemes_named(o.codec, o.activation);
  return o;
}

}  // namespace trainer
