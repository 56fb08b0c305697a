#include "tokenizers/regex/automaton.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace posenc::text {
namespace {

constexpr std::size_t kMostInstructions = 2000, kMostStates = 2000, kMostSets = 64,
                      kMostClasses = 200;

/// Thrown where the table would be too large; it does not leave Automaton::make.
struct TooLarge {};

}  // namespace

/// Makes the table: the expression becomes a list of instructions, and each state of the table is a
/// list of those that a backtracking search would try, in its order.
class AutomatonBuilder {
 public:
  Automaton build(const Expression& expression) {
    const uint16_t match = emit({Instruction::Kind::Match});
    const uint16_t begin = emit(expression, match);
    make_classes();
    rows_.push_back({});  // state 0 is the end
    std::vector<uint16_t> threads;
    std::vector<bool> seen(program_.size());
    add(begin, threads, seen, kUnknown);
    const uint16_t state = state_of(std::move(threads));
    for (std::size_t i = 1; i < rows_.size(); ++i) fill(i);
    const uint32_t stride = static_cast<uint32_t>(class_sets_.size());
    made_.begin_ = state * stride;
    made_.steps_.assign(stride, 0);
    for (std::size_t i = 1; i < rows_.size(); ++i) {
      for (const auto& [next, matches] : rows_[i]) {
        made_.steps_.push_back(next * stride | (matches ? Automaton::kMatch : 0));
      }
    }
    return std::move(made_);
  }

 private:
  /// What a search does next.
  struct Instruction {
    enum class Kind : uint8_t { Set, Ahead, Split, Match } kind;
    bool negative = false;           // Ahead
    uint16_t set = 0;                // Set, Ahead
    uint16_t first = 0, second = 0;  // where to go on; Split tries both in this order
  };

  /// The next state, and whether a match ends before the character.
  struct Step {
    uint32_t state;
    bool matches;
  };
  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);  // the class ahead

  uint16_t emit(Instruction instruction) {
    if (program_.size() == kMostInstructions) throw TooLarge{};
    program_.push_back(instruction);
    return static_cast<uint16_t>(program_.size() - 1);
  }

  /// Writes the instructions of `one`, after which the search goes on at `next`. Returns the first.
  uint16_t emit(const Expression& one, uint16_t next) {
    switch (one.kind) {
      case Expression::Kind::Set:
        return emit({Instruction::Kind::Set, false, number(one.set), next});
      case Expression::Kind::Ahead:
        return emit({Instruction::Kind::Ahead, one.negative, number(one.set), next});
      case Expression::Kind::Sequence: {
        for (auto child = one.children.rbegin(); child != one.children.rend(); ++child)
          next = emit(*child, next);
        return next;
      }
      case Expression::Kind::Alternatives: {
        uint16_t first = emit(one.children.back(), next);
        for (auto child = one.children.rbegin() + 1; child != one.children.rend(); ++child) {
          first = emit({Instruction::Kind::Split, false, 0, emit(*child, next), first});
        }
        return first;
      }
      default: return emit_repeat(one, next);
    }
  }

  uint16_t emit_repeat(const Expression& one, uint16_t next) {
    const Expression& child = one.children[0];
    const auto split = [&](uint16_t again, uint16_t done) {
      return Instruction{Instruction::Kind::Split, false, 0, one.lazy ? done : again,
                         one.lazy ? again : done};
    };
    if (one.most == Expression::kNoLimit) {
      const uint16_t loop = emit(split(0, 0));
      const uint16_t again = emit(child, loop);
      program_[loop] = split(again, next);
      next = loop;
    } else {
      const uint16_t done = next;
      for (uint32_t i = one.least; i < one.most; ++i) next = emit(split(emit(child, next), done));
    }
    for (uint32_t i = 0; i < one.least; ++i) next = emit(child, next);
    return next;
  }

  uint16_t number(const CharacterSet& set) {
    const auto known = std::find(sets_.begin(), sets_.end(), set);
    if (known != sets_.end()) return static_cast<uint16_t>(known - sets_.begin());
    if (sets_.size() == kMostSets) throw TooLarge{};
    sets_.push_back(set);
    return static_cast<uint16_t>(sets_.size() - 1);
  }

  /// Gives characters that are in the same sets the same class. Class 0 is in no set.
  void make_classes() {
    std::vector<std::pair<char32_t, uint64_t>> changes;  // where a set begins or ends
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      for (const auto& range : sets_[i].ranges()) {
        changes.push_back({range.first, uint64_t{1} << i});
        changes.push_back({range.last + 1, uint64_t{1} << i});
      }
    }
    changes.push_back({0x110000, 0});
    std::sort(changes.begin(), changes.end());
    class_sets_ = {0};
    std::map<uint64_t, uint8_t> known;
    char32_t c = 0;
    uint64_t in = 0;
    for (const auto& [end, set] : changes) {
      if (end > c) {
        const auto [found, is_new] =
            known.try_emplace(in, static_cast<uint8_t>(class_sets_.size()));
        if (is_new) class_sets_.push_back(in);
        if (class_sets_.size() > kMostClasses) throw TooLarge{};
        fill_pages(c, end, found->second);
        c = end;
      }
      in ^= set;
    }
  }

  void fill_pages(char32_t first, char32_t end, uint8_t value) {
    while (first < end) {
      const char32_t page_end = (first | 0xFF) + 1, stop = std::min(end, page_end);
      page_.resize(((stop - 1) & 0xFF) + 1, static_cast<char>(value));
      first = stop;
      if (page_.size() < 256) return;
      const auto [found, is_new] =
          known_pages_.try_emplace(page_, static_cast<uint16_t>(known_pages_.size()));
      if (is_new) made_.classes_.insert(made_.classes_.end(), page_.begin(), page_.end());
      made_.pages_[(page_end >> 8) - 1] = found->second;
      page_.clear();
      // Han and other large ranges are many times the same page.
      for (; first + 256 <= end && last_value_ == value; first += 256)
        made_.pages_[first >> 8] = last_page_;
      const bool is_uniform = std::all_of(found->first.begin(), found->first.end(),
                                          [&](char v) { return v == static_cast<char>(value); });
      if (is_uniform) {
        last_page_ = found->second;
        last_value_ = value;
      }
    }
  }

  bool is_in(std::size_t kind, uint16_t set) const { return (class_sets_[kind] >> set & 1) != 0; }

  /// Adds what the search tries from `at` on, as far as that is known without the next character,
  /// or with its class `ahead`.
  void add(uint16_t at, std::vector<uint16_t>& threads, std::vector<bool>& seen,
           std::size_t ahead) const {
    std::vector<uint16_t> open = {at};
    while (!open.empty()) {
      at = open.back();
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      const Instruction& one = program_[at];
      if (one.kind == Instruction::Kind::Split) {
        open.push_back(one.second);
        open.push_back(one.first);
      } else if (one.kind == Instruction::Kind::Ahead && ahead != kUnknown) {
        if (is_in(ahead, one.set) != one.negative) open.push_back(one.first);
      } else {
        threads.push_back(at);
      }
    }
  }

  uint16_t state_of(std::vector<uint16_t> threads) {
    if (threads.empty()) return 0;
    const auto [found, is_new] =
        states_.try_emplace(std::move(threads), static_cast<uint16_t>(rows_.size()));
    if (is_new) {
      if (rows_.size() == kMostStates) throw TooLarge{};
      rows_.push_back({});
      threads_.push_back(&found->first);
    }
    return found->second;
  }

  void fill(std::size_t state) {
    std::vector<Step> row;
    for (std::size_t kind = 0; kind < class_sets_.size(); ++kind) {
      std::vector<uint16_t> now, next;
      std::vector<bool> seen(program_.size());
      for (const uint16_t at : *threads_[state - 1]) {
        if (program_[at].kind == Instruction::Kind::Ahead) {
          add(at, now, seen, kind);
        } else if (!seen[at]) {
          seen[at] = true;
          now.push_back(at);
        }
      }
      bool matches = false;
      std::vector<bool> seen_next(program_.size());
      for (const uint16_t at : now) {
        const Instruction& one = program_[at];
        if (one.kind == Instruction::Kind::Match) {
          matches = true;
          break;  // whatever is less wanted than a match is not tried any more
        }
        if (is_in(kind, one.set)) add(one.first, next, seen_next, kUnknown);
      }
      row.push_back({state_of(std::move(next)), matches});
    }
    rows_[state] = std::move(row);
  }

  Automaton made_;
  std::vector<Instruction> program_;
  std::vector<CharacterSet> sets_;
  std::vector<uint64_t> class_sets_;  // the sets of each class, as bits
  std::string page_;
  std::map<std::string, uint16_t> known_pages_;
  int last_value_ = -1;
  uint16_t last_page_ = 0;
  std::map<std::vector<uint16_t>, uint16_t> states_;
  std::vector<const std::vector<uint16_t>*> threads_;  // of each state but 0
  std::vector<std::vector<Step>> rows_;
};

std::optional<Automaton> Automaton::make(const Expression& expression) {
  try {
    return AutomatonBuilder().build(expression);
  } catch (const TooLarge&) {
    return std::nullopt;
  }
}

}  // namespace posenc::text
