// Building blocks of the commands' reports: differences, columns, sizes, progress.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/types.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>

#include "cli/difference.h"
#include "cli/progress.h"
#include "cli/text_table.h"

namespace posenc::testing {
namespace {

using cli::difference;
using cli::Difference;

at::Tensor numbers(const std::vector<double>& values, at::ScalarType type = torch::kFloat) {
  return torch::tensor(values, torch::kDouble).to(type);
}

void expect(const Difference& got, bool equal, double max_abs, double max_ulp) {
  EXPECT_EQ(got.equal, equal);
  EXPECT_EQ(got.max_abs, max_abs);
  EXPECT_EQ(got.max_ulp, max_ulp);
}

TEST(DifferenceOf, CountsRepresentableNumbersInBetween) {
  const float next = std::nextafter(1.0F, 2.0F), tiny = std::numeric_limits<float>::denorm_min();
  expect(difference(numbers({1, 2}), numbers({1, 2})), true, 0, 0);
  expect(difference(numbers({1, 2}), numbers({next, 2})), false, next - 1.0F, 1);
  expect(difference(numbers({-1, 2}), numbers({-next, 2})), false, next - 1.0F, 1);
  expect(difference(numbers({tiny}), numbers({-tiny})), false, 2.0 * tiny, 2);  // across both zeros
  expect(difference(numbers({0.0}), numbers({-0.0})), false, 0, 0);  // the bits differ anyway
  for (const auto& [type, last] : {std::pair(torch::kBFloat16, 0x1p-7), {torch::kHalf, 0x1p-10}}) {
    expect(difference(numbers({1, 3}, type), numbers({1 + last, 3}, type)), false, last, 1);
  }
  // The distance between ordinals of float64 exceeds int64.
  EXPECT_NEAR(
      difference(numbers({-1e300}, torch::kDouble), numbers({1e300}, torch::kDouble)).max_ulp,
      2.0 * static_cast<double>(0x7E37E43C8800759CL), 1e4);
  expect(difference(torch::tensor({1, 5}), torch::tensor({1, 8})), false, 3, 0);
}

TEST(DifferenceOf, NaNAndInfinityAndShapes) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  expect(difference(numbers({nan, inf, -inf}), numbers({nan, inf, -inf})), true, 0, 0);
  const auto one = difference(numbers({nan, 1}), numbers({1, 1}));
  EXPECT_TRUE(!one.equal && std::isnan(one.max_abs) && std::isnan(one.max_ulp));
  const auto shapes = difference(torch::zeros({2, 3}), torch::zeros({3, 2}));
  EXPECT_TRUE(!shapes.equal && std::isnan(shapes.max_abs));
  EXPECT_EQ(shapes.why, "float32 (2, 3) and float32 (3, 2)");
  EXPECT_EQ(difference(torch::zeros({1}), torch::zeros({1}, torch::kHalf)).why,
            "float32 (1) and float16 (1)");
  const auto both = worst(difference(numbers({1}), numbers({3})), one);
  EXPECT_TRUE(!both.equal && std::isnan(both.max_abs));
  expect(worst(difference(numbers({1}), numbers({3})), {}), false, 2, 1 << 23 | 1 << 22);
}

TEST(ShortNumber, IsWholeOrHasTwoPlaces) {
  EXPECT_EQ(cli::short_number(0), "0");
  EXPECT_EQ(cli::short_number(9999999), "9999999");
  EXPECT_EQ(cli::short_number(1e7), "1e+07");
  EXPECT_EQ(cli::short_number(3.14e-5), "3.1e-05");
  EXPECT_EQ(cli::short_number(std::nan("")), "nan");
}

TEST(TextTable, NumbersAreFlushRightAndNothingTrails) {
  EXPECT_EQ(cli::text_table({{"name", "size", "text"}, {"a", "7", "x"}, {"bcd", "nan", ""}}, 1),
            " name  size  text\n"
            " a        7  x\n"
            " bcd    nan\n");
  EXPECT_EQ(cli::text_table({}), "");
}

TEST(SizeText, CountsAsDisksDo) {
  const std::vector<std::pair<uint64_t, std::string>> sizes = {
      {0, "0 bytes"},
      {999, "999 bytes"},
      {1000, "1.0 kB"},
      {999'900, "999.9 kB"},
      {1'000'000, "1.0 MB"},
      {3'200'000'000, "3.2 GB"},
      {5'000'000'000'000, "5.0 TB"},
      {7'000'000'000'000'000, "7000.0 TB"}};
  for (const auto& [bytes, text] : sizes) EXPECT_EQ(cli::size_text(bytes), text);
}

// What `work` prints to stderr, which is a terminal or a file.
template <typename Work>
std::string shown_on(bool is_terminal, const Work& work) {
  const int screen = is_terminal ? ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)
                                 : ::dup(::fileno(std::tmpfile()));
  EXPECT_GE(screen, 0);
  int side = screen;
  if (is_terminal) {
    EXPECT_EQ(::grantpt(screen) + ::unlockpt(screen), 0);
    side = ::open(::ptsname(screen), O_RDWR | O_NOCTTY);
  }
  const int before = ::dup(STDERR_FILENO);
  ::dup2(side, STDERR_FILENO);
  work();
  ::dup2(before, STDERR_FILENO);
  std::string text;
  char part[4096];
  if (!is_terminal) ::lseek(screen, 0, SEEK_SET);
  for (ssize_t count; (count = ::read(screen, part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(count));
  }
  for (const int descriptor : {before, screen, is_terminal ? side : -1}) {
    if (descriptor >= 0) ::close(descriptor);
  }
  return text;
}

TEST(ProgressLine, IsOfLongWorkOnATerminalAlone) {
  const auto wait = [](int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  const auto short_work = [] { cli::Progress("hashing").show(1, 4); };
  EXPECT_EQ(shown_on(true, short_work), "");
  const auto long_work = [&] {
    cli::Progress progress("hashing");
    progress.show(1, 4'000);
    wait(1050);
    progress.show(1'000, 4'000);
    progress.show(1'001, 4'000);  // too soon after the previous one
    progress.show(0, 0);
    wait(250);
    progress.show("12 lines");
  };
  EXPECT_EQ(shown_on(true, long_work),
            "\r\033[Khashing: 25 % of 4.0 kB\r\033[Khashing: 12 lines\r\033[K");
  EXPECT_EQ(shown_on(false, long_work), "");
}

}  // namespace
}  // namespace posenc::testing
