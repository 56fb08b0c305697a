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
  /// The matches in a text, from its begin to its end.
  class Matches;

  /// Whether each character takes one step, as in all patterns of the well-known tokenizers.
  bool is_simple() const;

  struct Program;

 private:
  explicit Pattern(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
};

class Pattern::Matches {
 public:
  /// `text` must outlive it.
  Matches(const Pattern& pattern, std::string_view text)
      : program_(*pattern.program_), text_(text) {}

  /// Finds the next match, as the package iterates: it begins where the last one ended or later,
  /// anything before is seen by the expression, and an empty match at the end of the last one is
  /// refused. Returns false if there is none. Throws TokenizerError where that takes too long.
  bool next(Match& match);

 private:
  bool search(Match& match);

  const Program& program_;
  std::string_view text_;
  std::size_t from_ = 0, last_end_ = static_cast<std::size_t>(-1);
  std::size_t work_ = 0;  // bytes that all searches have looked at
};

}  // namespace posenc::text
