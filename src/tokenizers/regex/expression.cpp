#include "tokenizers/regex/expression.h"

#include <algorithm>

namespace posenc::text {

bool Expression::can_be_empty() const {
  const auto empty = [](const Expression& child) { return child.can_be_empty(); };
  switch (kind) {
    case Kind::Set: return false;
    case Kind::Sequence: return std::all_of(children.begin(), children.end(), empty);
    case Kind::Alternatives: return std::any_of(children.begin(), children.end(), empty);
    case Kind::Repeat: return least == 0 || children[0].can_be_empty();
    default: return true;
  }
}

CharacterSet Expression::begins() const {
  CharacterSet first = set;
  if (kind == Kind::Ahead) return {};
  for (const Expression& child : children) {
    first.add(child.begins());
    if (kind == Kind::Sequence && !child.can_be_empty()) break;
  }
  return first;
}

}  // namespace posenc::text
