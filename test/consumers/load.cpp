// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Loads libraries, so that each sees the symbols of all, and prints the fingerprint that they make,
// if it is the same.

#include <dlfcn.h>

#include <cstdio>
#include <vector>

int main(int count, char** paths) {
  using function = unsigned long long();
  std::vector<function*> functions;
  for (int i = 1; i < count; ++i) {
    void* const library = dlopen(paths[i], RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
    functions.push_back(reinterpret_cast<function*>(dlsym(library, "make_fingerprint")));
  }
  const unsigned long long first = functions.at(0)();
  for (function* const f : functions)
    if (f() != first) return std::fprintf(stderr, "the libraries disagree\n"), 1;
  std::printf("%016llx\n", first);
}
