// Building blocks of the commands' reports: columns, sizes, progress.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/types.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "cli/progress.h"
#include "cli/text_table.h"

namespace posenc::testing {
namespace {

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
  cli::Progress::Clock::time_point time{};
  const auto now = [&] { return time; };
  const auto wait = [&](int milliseconds) { time += std::chrono::milliseconds(milliseconds); };
  const auto short_work = [&] {
    cli::Progress progress("hashing", now);
    wait(999);
    progress.show(1, 4);
  };
  EXPECT_EQ(shown_on(true, short_work), "");
  const auto long_work = [&] {
    cli::Progress progress("hashing", now);
    progress.show(1, 4'000);
    wait(1000);
    progress.show(1'000, 4'000);
    wait(199);
    progress.show(1'001, 4'000);  // too soon after the previous one
    progress.show(0, 0);
    wait(1);
    progress.show("12 lines");
  };
  EXPECT_EQ(shown_on(true, long_work),
            "\r\033[Khashing: 25 % of 4.0 kB\r\033[Khashing: 12 lines\r\033[K");
  EXPECT_EQ(shown_on(false, long_work), "");
}

}  // namespace
}  // namespace posenc::testing
