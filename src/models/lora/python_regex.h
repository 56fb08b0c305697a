#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::lora {

/// A part of a PythonRegex: what follows a place in a text.
struct RegexNode {
  enum class Kind {
    Characters,  ///< one of `characters`
    Sequence,    ///< all of `parts`, one after another
    Choice,      ///< one of them
    Repeat,      ///< the first, `least` to `most` times
    Ahead,       ///< whether the first follows, or with `is_negated` does not
    Place,       ///< what `place` says
  };
  Kind kind = Kind::Sequence;
  std::vector<RegexNode> parts = {};
  std::bitset<128> characters = {};
  std::size_t least = 0, most = 0;
  bool is_negated = false;
  char place = '\0';  ///< A, Z, b or B of Python; ^ and $ of lines, E what $ is else
};

/// A regular expression of Python's `re`, for names of modules. It follows all ways through a name
/// at once and not one after another, so that those of a file can be neither slow nor deep:
/// std::regex calls itself for each character, and has other rules.
class PythonRegex {
 public:
  /// Throws c10::ValueError, with `where` in front, for what Python does not compile, and for what
  /// is not supported: references to groups, conditions, atomic groups and possessive repeats,
  /// lookbehind, the flags a, L, u and x, and characters outside ASCII.
  PythonRegex(const std::string& where, const std::string& text);

  /// As re.fullmatch(). Throws c10::ValueError for a name that no module has, with characters
  /// outside ASCII or more than 1,000, and for an expression that takes too many steps.
  bool matches(const std::string& name) const;
  /// Whether it has a | outside of groups.
  bool is_choice() const { return root_.parts.size() > 1; }

 private:
  RegexNode root_;
};

}  // namespace posenc::lora
