// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "arguments.hpp"

#include <algorithm>
#include <string_view>

#include "failure.hpp"

namespace furl::cli {
namespace {

using names = std::vector<std::string>;

struct command_rules {
  const char* command;
  names required;
  names optional;
};

// One set of options describes a blob: decompress takes those that only compress uses, too.
const names codec_options = {"--dtype", "--bits",   "--widths",   "--group",
                             "--meta",  "--coding", "--rounding", "--window",
                             "--seed",  "--offset", "--device",   "--threads"};

names with(names list, const std::string& name) {
  list.push_back(name);
  return list;
}

const std::vector<command_rules>& all_rules() {
  static const std::vector<command_rules> rules = {
      {"inspect",
       {},
       {"--in", "--shape", "--dtype", "--bits", "--group", "--meta", "--coding", "--rounding",
        "--window", "--seed", "--offset", "--device", "--threads"}},
      {"compress", {"--in", "--out", "--shape"}, codec_options},
      {"decompress", {"--in", "--out", "--shape"}, with(codec_options, "--out-dtype")},
      {"decompress-add", {"--in", "--inout", "--shape"}, with(codec_options, "--out-dtype")},
      {"pack", {"--in", "--out", "--shape", "--bits"}, {"--device", "--threads"}},
      {"unpack", {"--in", "--out", "--shape", "--bits"}, {"--device", "--threads"}},
  };
  return rules;
}

bool contains(const names& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool known_option(const std::string& name) {
  return std::any_of(all_rules().begin(), all_rules().end(), [&](const command_rules& r) {
    return contains(r.required, name) || contains(r.optional, name);
  });
}

/// So that a forgotten value does not swallow the next option; "--in=--x" takes any value.
bool is_option(std::string_view text) {
  return text.substr(0, 2) == "--";
}

}  // namespace

arguments::arguments(int count, const char* const* texts) {
  for (int i = 1; i < count; ++i) {
    const std::string text = texts[i];
    if (text == "--help" || text == "-h") {
      help_ = true;
    } else if (text.size() > 1 && text[0] == '-') {
      const auto equals = text.find('=');
      const std::string name = text.substr(0, equals);
      if (!known_option(name)) throw bad_usage(name + ": unknown option (see furl help)");
      if (equals == std::string::npos && (i + 1 == count || is_option(texts[i + 1])))
        throw bad_usage(name + ": needs a value");
      const std::string value = equals == std::string::npos ? texts[++i] : text.substr(equals + 1);
      if (!options_.emplace(name, value).second) throw bad_usage(name + ": given more than once");
    } else if (command_.empty()) {
      command_ = text;
    } else {
      operands_.push_back(text);
    }
  }
  help_ = help_ || command_ == "help";
  if (!help_ && !(command_.empty() && options_.empty())) check();
}

void arguments::check() const {
  if (command_.empty()) throw bad_usage("no command given (see furl help)");
  const auto rules = std::find_if(all_rules().begin(), all_rules().end(),
                                  [&](const command_rules& r) { return r.command == command_; });
  if (rules == all_rules().end()) throw bad_usage(command_ + ": unknown command (see furl help)");
  for (const auto& [name, value] : options_)
    if (!contains(rules->required, name) && !contains(rules->optional, name))
      throw bad_usage(name + ": not an option of " + command_ + " (see furl help)");
  for (const std::string& name : rules->required)
    if (!has(name)) throw bad_usage(command_ + " needs " + name + " (see furl help)");
  const std::size_t allowed = command_ == "inspect" ? 1 : 0;
  if (operands_.size() > allowed)
    throw bad_usage(operands_[allowed] + ": unexpected argument (see furl help)");
}

}  // namespace furl::cli
