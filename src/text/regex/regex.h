#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace posenc::text {

/// A regular expression as `tokenizers` understands it (Oniguruma 6.9.10, Unicode 16.0), or a text
/// that is searched as it is. Immutable; any number of threads may search at once.
class Pattern {
 public:
  /// Throws TokenizerError for an expression that Oniguruma rejects, that is too long, or that asks
  /// for characters of which there is no table.
  static Pattern regex(std::string_view expression);
  /// Finds `text` itself. An empty one matches at every character and at the end.
  static Pattern literal(std::string_view text);

  /// A match: bytes from begin to end.
  struct Match {
    std::size_t begin, end;
  };
  /// `previous` of a first search.
  static constexpr std::size_t kNoMatch = static_cast<std::size_t>(-1);
  /// Finds the first match that begins at `from` or later, in the whole of `text`, as the package
  /// iterates: `previous` is the end of the match before it, and an empty match there is refused.
  /// Returns false if there is none. Throws TokenizerError where the search takes too long.
  bool find(std::string_view text, std::size_t from, std::size_t previous, Match& match) const;

  /// Whether each character takes one step, as in all patterns of the well-known tokenizers.
  bool is_simple() const;

  struct Program;

 private:
  explicit Pattern(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
};

}  // namespace posenc::text
