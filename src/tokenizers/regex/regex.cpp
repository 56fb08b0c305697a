#include "tokenizers/regex/regex.h"

#include <utility>
#include <variant>

#include "posenc/tokenizers/error.h"
#include "tokenizers/regex/automaton.h"
#include "tokenizers/regex/oniguruma.h"

namespace posenc::text {
namespace {

/// Bytes that the searches of a text may look at, for each of its own and beside.
constexpr std::size_t kMostWork = 20'000'000, kMostWorkPerByte = 20;

bool search_literal(const std::string& literal, std::string_view text, std::size_t from,
                    Pattern::Match& match) {
  const std::size_t at = text.find(literal, from);
  match = {at, at + literal.size()};
  return at != std::string_view::npos;
}

bool search_automaton(const Automaton& automaton, std::string_view text, std::size_t from,
                      std::size_t& work, Pattern::Match& match) {
  for (std::size_t at = from;;) {
    const std::size_t end = automaton.match(text, at, work);
    if (work > kMostWork + kMostWorkPerByte * text.size()) {
      throw TokenizerError("Regex: a search must end in reasonable time. Got " +
                               std::to_string(work) + " steps in " + std::to_string(text.size()) +
                               " bytes",
                           TokenizerErrorCode::Limit);
    }
    if (end != Automaton::kNone) {
      match = {at, end};
      return true;
    }
    do {
      if (at == text.size()) return false;
      at += utf8_length(text[at]);
    } while (!automaton.can_begin(text, at));
  }
}

}  // namespace

struct Pattern::Program {
  std::variant<std::string, Automaton, OnigurumaRegex> how;
};

Pattern Pattern::regex(std::string_view expression) {
  if (const auto simple = parse_expression(expression)) {
    if (auto automaton = Automaton::make(*simple)) {
      return Pattern(std::make_shared<const Program>(Program{std::move(*automaton)}));
    }
  }
  return Pattern(std::make_shared<const Program>(Program{OnigurumaRegex(expression)}));
}

Pattern Pattern::literal(std::string_view text) {
  return Pattern(std::make_shared<const Program>(Program{std::string(text)}));
}

bool Pattern::is_simple() const { return !std::holds_alternative<OnigurumaRegex>(program_->how); }

bool Pattern::Matches::search(Match& match) {
  if (const auto* automaton = std::get_if<Automaton>(&program_.how))
    return search_automaton(*automaton, text_, from_, work_, match);
  if (const auto* regex = std::get_if<OnigurumaRegex>(&program_.how))
    return regex->search(text_, from_, match);
  return search_literal(std::get<std::string>(program_.how), text_, from_, match);
}

bool Pattern::Matches::next(Match& match) {
  if (text_.empty()) return false;  // as in the package, even for one that matches nothing
  while (from_ <= text_.size() && search(match)) {
    if (match.begin != match.end || match.end != last_end_) {
      from_ = last_end_ = match.end;
      return true;
    }
    from_ += from_ < text_.size() ? utf8_length(text_[from_]) : 1;
  }
  return false;
}

}  // namespace posenc::text
