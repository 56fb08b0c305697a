#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

// What options may be, checked before they are converted: CLI11's own messages name C++ types, and
// its own conversion takes other notations of numbers.
namespace posenc::cli {

/// The widest beam search: beyond it a step needs more memory than any machine has.
constexpr int64_t kMostBeams = 10'000;

/// The largest table: as many rows as the library makes, and more channels than any model has.
constexpr int64_t kMostRows = int64_t{1} << 31, kMostChannels = int64_t{1} << 20;

/// The whole of `text` as a number, or nothing.
std::optional<int64_t> whole_number(const std::string& text);
std::optional<double> real_number(const std::string& text);

/// A whole number in [least, most].
CLI::Validator whole(int64_t least, int64_t most = std::numeric_limits<int64_t>::max());

/// One of the words.
CLI::Validator choice(const std::vector<std::string>& words);

/// key=value.
CLI::Validator assignment();

/// The name of a file or folder to be read: a variable of a script that is empty names none.
CLI::Validator input_path();

/// The name of a file or folder to be written. Not `-`: a result becomes visible by renaming a
/// complete file, which standard output cannot be.
CLI::Validator output_path();

}  // namespace posenc::cli
