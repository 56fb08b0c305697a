#include "cli/program.h"

namespace posenc::testing {
namespace {

// In the same build folder as posenc.
const std::string kDemo =
    (std::filesystem::path(POSENC_CLI).parent_path() / "posenc-demo").string();

class Demo : public InFolder {};

TEST_F(Demo, EveryWordComesBack) {
  const auto text = text_file("text", "The cat saw the other cat; the white-rabbit saw neither.");
  const auto result = run_program({kDemo, text});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "10 words, 6 of them distinct", result.out);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "10 of 10 (100.0 %)", result.out);
}

TEST_F(Demo, RejectsFilesThatAreNotText) {
  EXPECT_EQ(run_program({kDemo}).status, 2);
  EXPECT_EQ(run_program({kDemo, file("absent")}).status, 1);
  const auto empty = run_program({kDemo, text_file("empty", "1, 2, 3")});
  EXPECT_EQ(empty.status, 1);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "no words", empty.err);
}

}  // namespace
}  // namespace posenc::testing
