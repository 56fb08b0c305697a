// Which instruction set is chosen, and the values that POSENC_ISA may have.
#include "kernels/isa.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "kernels/dispatch.h"

namespace posenc::kernels {
namespace {

std::string message_for(const char* wish) {
  try {
    isa_for(wish);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(KernelSets, BeginWithTheOneForEveryProcessor) {
  const auto names = set_names();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "generic");
#if defined(__x86_64__)
  EXPECT_EQ(names.at(1), "sse2");
#elif defined(__aarch64__)
  EXPECT_EQ(names.at(1), "neon");
#endif
  for (const std::string& name : names) EXPECT_EQ(find(name)->name, name);
}

TEST(KernelSets, TheBestIsChosenUnlessAnotherIsNamed) {
  Isa best;
  ASSERT_TRUE(find_isa(set_names().back(), &best));
  EXPECT_EQ(isa_for(nullptr), best);
  EXPECT_EQ(isa_for(""), best);
  for (const std::string& name : set_names()) {
    Isa isa;
    ASSERT_TRUE(find_isa(name, &isa));
    EXPECT_EQ(isa_for(name.c_str()), isa);
  }
}

TEST(KernelSets, ANameThatThisProcessorLacksIsAnError) {
  std::string names;
  for (const std::string& name : set_names()) names += (names.empty() ? "" : ", ") + name;
#if defined(__aarch64__)
  const char* const foreign = "avx2";
#else
  const char* const foreign = "neon";
#endif
  for (const char* wish : {foreign, "avx10", "AVX2", " sse2", "generic,sse2"}) {
    EXPECT_EQ(message_for(wish),
              "[kernels] POSENC_ISA must name an instruction set that this processor has: " +
                  names + ". Got \"" + wish + "\"");
    EXPECT_EQ(find(wish), nullptr);
  }
}

}  // namespace
}  // namespace posenc::kernels
