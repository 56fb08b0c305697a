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
#include "posenc/base/error.h"

namespace posenc::cli {

constexpr std::size_t kLongestText = std::size_t{1} << 30;  // in bytes

/// Calls `work`, and `on_error` for the errors of the library.
template <typename Work, typename OnError>
void with_library_errors(Work&& work, OnError&& on_error) {
  try {
    work();
  } catch (const c10::Error& error) {
    on_error(error);
  } catch (const Error& error) {
    on_error(error);
  }
}

/// Calls `work` with each line; what has been written is seen before the next line has to be waited
/// for. Errors of the library get the line's number in front.
template <typename Work>
void each_line(const std::string& file, Work&& work) {
  LineReader reader(file, kLongestText);
  std::string line;
  while (true) {
    if (!reader.is_ready()) std::fflush(stdout);
    if (!reader.next(line)) return;
    with_library_errors([&] { work(reader, line); },
                        [&](const std::exception& error) {
                          fail("{}: line {}: {}", reader.name(), reader.number(),
                               message_of(error));
                        });
  }
}

/// The lines of a file, or of standard input if it is "" or "-".
std::vector<std::string> texts_in(const std::string& file);

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
    const auto find_line = [&](const std::exception&) {
      int64_t number = last - static_cast<int64_t>(all.size());
      for (const Text& text : all) {
        ++number;
        with_library_errors([&] { work(std::vector<Text>{text}); },
                            [&](const std::exception& error) {
                              fail("{}: line {}: {}", reader.name(), number, message_of(error));
                            });
      }
    };
    with_library_errors(
        [&] {
          if (!all.empty()) work(all);
        },
        find_line);
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
