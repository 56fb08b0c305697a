#pragma once

#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

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

/// The two texts of a line, which a tab separates.
std::pair<std::string_view, std::string_view> split_pair(const LineReader& reader,
                                                         std::string_view line);

}  // namespace posenc::cli
