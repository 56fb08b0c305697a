#include "support/seed.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>

namespace posenc::testing {
namespace {

const char* variable() {
  const char* const set = std::getenv("POSENC_TEST_SEED");
  return set != nullptr && *set != '\0' ? set : nullptr;
}

// A failure that depends on random numbers can only be reproduced with their seed.
class PrintsSeed : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    std::cout << "[   seed   ] "
              << (variable() ? std::string("POSENC_TEST_SEED=") + variable() : "the tests' own")
              << std::endl;
  }
};

const bool seed_listens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new PrintsSeed);  // gtest deletes it
  return true;
}();

}  // namespace

uint32_t seed(uint64_t own) {
  const char* const set = variable();
  if (set == nullptr) return static_cast<uint32_t>(own);
  char* end = nullptr;
  const auto number = std::strtoull(set, &end, 10);
  if (*end != '\0') throw std::invalid_argument("POSENC_TEST_SEED must be an integer");
  const auto half = [](uint64_t x) { return static_cast<uint32_t>(x); };
  std::seed_seq both{half(number), half(number >> 32), half(own), half(own >> 32)};
  uint32_t mixed = 0;
  both.generate(&mixed, &mixed + 1);
  return mixed;
}

}  // namespace posenc::testing
