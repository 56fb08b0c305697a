#pragma once

#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/error.h"
#include "cli/line_reader.h"

namespace posenc::cli {

constexpr std::size_t kLongestText = std::size_t{1} << 30;  // in bytes

/// Calls `work` with each line; what has been written is seen before the next line has to be waited
/// for. Errors of the library get the line's number in front.
template <typename Work>
void each_line(const std::string& file, Work&& work) {
  LineReader reader(file, kLongestText);
  std::string line;
  while (true) {
    if (!reader.is_ready()) std::fflush(stdout);
    if (!reader.next(line)) return;
    try {
      work(reader, line);
    } catch (const c10::Error& error) {
      fail("{}: line {}: {}", reader.name(), reader.number(), message_of(error));
    }
  }
}

/// Calls `work` with up to `most` lines at a time, of which `read(reader, line)` makes a Text each;
/// with those that there are before the next has to be waited for. Errors of the library get the
/// line's number in front, after the lines before it.
template <typename Text, typename Read, typename Work>
void each_lines(const std::string& file, int64_t most, Read&& read, Work&& work) {
  LineReader reader(file, kLongestText);
  std::vector<Text> texts;
  int64_t last = 0;  // the number of their last line
  const auto work_on_all = [&] {
    const std::vector<Text> all = std::exchange(texts, {});
    try {
      if (!all.empty()) work(all);
    } catch (const c10::Error&) {
      int64_t number = last - static_cast<int64_t>(all.size());
      for (const Text& text : all) {
        ++number;
        try {
          work(std::vector<Text>{text});
        } catch (const c10::Error& error) {
          fail("{}: line {}: {}", reader.name(), number, message_of(error));
        }
      }
    }
    std::fflush(stdout);
  };
  std::string line;
  while (true) {
    if (static_cast<int64_t>(texts.size()) == most || !reader.is_ready()) work_on_all();
    try {
      if (!reader.next(line)) break;
      texts.push_back(read(reader, line));
    } catch (const CommandError&) {
      work_on_all();
      throw;
    }
    last = reader.number();
  }
  work_on_all();
}

/// The two texts of a line, which a tab separates.
std::pair<std::string, std::string> split_pair(const LineReader& reader, std::string_view line);

}  // namespace posenc::cli
