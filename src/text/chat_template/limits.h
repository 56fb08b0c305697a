#pragma once

#include <cstddef>
#include <cstdint>

#include "text/chat_template/value.h"

namespace posenc::text::jinja {

/// What this thread may spend while it renders a template, so that each ends, in bounded memory,
/// whatever it says. A template that a function of another calls has a budget of its own.
class RenderBudget {
 public:
  /// Steps for a template that is given these values.
  explicit RenderBudget(const NamedValues& names);
  ~RenderBudget();
  RenderBudget(const RenderBudget&) = delete;
  RenderBudget& operator=(const RenderBudget&) = delete;

 private:
  friend void spend(std::size_t steps);
  int64_t left_;
  RenderBudget* const before_;
};

/// Takes steps from the budget of this thread, if it has one; refuses what is beyond it. A step is
/// an expression, an item of a list that is made or gone through, or kTextOfStep bytes of a text.
void spend(std::size_t steps);
constexpr std::size_t kTextOfStep = 16;
inline void spend_text(std::size_t bytes) { spend(bytes / kTextOfStep); }

/// How many values are inside each other in this one, or at most in one of these.
int depth_of(const TemplateValue& value);
int depth_of(const TemplateValues& values);
/// The depth of what holds values of this depth; refuses one beyond what a recursion may have.
int depth_around(int depth);

}  // namespace posenc::text::jinja
