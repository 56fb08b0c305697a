#include "tokenizers/pipeline/encoded_rows.h"

#include <algorithm>
#include <string_view>

#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

// The window of each encoding that has a text.
using Combination = std::vector<std::size_t>;

// Blanks, and what ByteLevel makes of them.
bool is_blank(char32_t c) { return c == 0x120 || unicode::is_white_space(c); }

// Counts the blanks that tokens begin and end with. Added tokens of blanks may share the end of a
// text: a run of blanks is read once.
class BlankCounter {
 public:
  struct Blanks {
    uint32_t leading, trailing;
  };

  Blanks operator()(std::string_view token) {
    const uint32_t leading = count_leading(token);
    if (run_end_ == token.data() + token.size()) return {leading, leading};
    uint32_t trailing = 0;
    for (std::size_t end = token.size(); end > 0; ++trailing) {
      std::size_t at = previous_character(token, end);
      end = at;
      if (!is_blank(next_character(token, at))) break;
    }
    return {leading, trailing};
  }

 private:
  uint32_t count_leading(std::string_view token) {
    const char *begin = token.data(), *end = begin + token.size();
    const bool is_in_run = begin >= run_begin_ && begin < run_end_ && run_end_ <= end;
    if (!is_in_run) {
      run_begin_ = run_end_ = begin;
      count_ = 0;
    }
    for (; run_begin_ < begin; --count_) {
      run_begin_ += utf8_length(static_cast<unsigned char>(*run_begin_));
    }
    for (auto at = static_cast<std::size_t>(run_end_ - begin); at < token.size(); ++count_) {
      if (!is_blank(next_character(token, at))) break;
      run_end_ = begin + at;
    }
    return count_;
  }

  const char *run_begin_ = nullptr, *run_end_ = nullptr;  // the blanks of the last token
  uint32_t count_ = 0;                                    // how many characters these are
};

// Trims one token's span: blanks are taken out.
void trim_span(const Plan::Trim& trim, bool is_first_token, BlankCounter::Blanks blanks,
               Span& span) {
  if (blanks.leading > 0) {
    const bool is_first = is_first_token || span.begin == 0;
    const bool is_kept = is_first && trim.add_prefix_space && blanks.leading == 1;
    span.begin = std::min(span.begin + (is_kept ? 0 : blanks.leading), span.end);
  }
  if (blanks.trailing > 0 && span.end >= blanks.trailing)
    span.end = std::max(span.end - blanks.trailing, span.begin);
}

class RowWriter {
 public:
  RowWriter(const Plan& plan, const TextTokens* texts, const std::vector<Windows>& windows,
            const Requested& requested, EncodedRows& rows)
      : plan_(plan), texts_(texts), windows_(windows), requested_(requested), rows_(rows) {}

  void write(const Combination& combination, std::size_t text) {
    for (std::size_t i = 0; i < plan_.encodings.size(); ++i) {
      const Plan::Encoding& encoding = plan_.encodings[i];
      const bool is_main = !encoding.text || combination[i] == 0;
      for (const auto& special : encoding.before) add(special, is_main);
      if (encoding.text) add_text(encoding, combination[i]);
      for (const auto& special : encoding.after) add(special, is_main);
    }
    rows_.ends.push_back(rows_.ids.size());
    rows_.texts.push_back(text);
    rows_.are_cut.push_back(is_cut_);
    is_cut_ = false;
  }

 private:
  void add(const Plan::Special& special, bool is_main) {
    rows_.ids.push_back(special.token.id);
    rows_.type_ids.push_back(is_main ? special.type : special.window_type);
    rows_.special_tokens_mask.push_back(special.is_marked);
    if (requested_.offsets) rows_.offsets.push_back({0, 0});
    if (requested_.tokens) rows_.tokens.push_back(special.token.token);
    if (requested_.words) {
      rows_.words.push_back(-1);
      rows_.sequences.push_back(-1);
    }
  }

  void add_text(const Plan::Encoding& encoding, std::size_t window) {
    const auto index = static_cast<std::size_t>(*encoding.text);
    const TextTokens& tokens = texts_[index];
    const auto [begin, end] = windows_[index][window];
    is_cut_ = is_cut_ || end - begin < tokens.ids.size();
    rows_.ids.insert(rows_.ids.end(), tokens.ids.begin() + static_cast<std::ptrdiff_t>(begin),
                     tokens.ids.begin() + static_cast<std::ptrdiff_t>(end));
    rows_.type_ids.resize(rows_.ids.size(), window == 0 ? encoding.type : encoding.window_type);
    rows_.special_tokens_mask.resize(rows_.ids.size(), 0);
    if (requested_.offsets) {
      for (std::size_t i = begin; i < end; ++i) {
        Span span = tokens.offsets[i];
        if (!encoding.trims.empty()) {
          const BlankCounter::Blanks blanks = count_blanks_(tokens.tokens[i]);
          for (const Plan::Trim& trim : encoding.trims)
            trim_span(trim, i == begin && trim.is_at_begin, blanks, span);
        }
        rows_.offsets.push_back(span);
      }
    }
    if (requested_.tokens) {
      for (std::size_t i = begin; i < end; ++i) rows_.tokens.emplace_back(tokens.tokens[i]);
    }
    if (requested_.words) {
      for (std::size_t i = begin; i < end; ++i) rows_.words.push_back(tokens.words[i]);
      rows_.sequences.resize(rows_.ids.size(), *encoding.text);
    }
  }

  const Plan& plan_;
  const TextTokens* texts_;
  const std::vector<Windows>& windows_;
  const Requested& requested_;
  EncodedRows& rows_;
  BlankCounter count_blanks_;
  bool is_cut_ = false;  // the row
};

// The combinations besides the main one, as merging one encoding after the other finds them: those
// that there were, with each window of the new one, and then the main one with its other windows.
std::vector<Combination> other_combinations(const Plan& plan, const std::vector<Windows>& windows) {
  std::vector<Combination> others;
  const std::size_t count = plan.encodings.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!plan.encodings[i].text) continue;
    const std::size_t own = windows[static_cast<std::size_t>(*plan.encodings[i].text)].size();
    std::vector<Combination> merged;
    others.emplace_back(count, 0);  // the main one
    for (const Combination& other : others) {
      const bool is_main = &other == &others.back();
      for (std::size_t window = is_main ? 1 : 0; window < own; ++window) {
        merged.push_back(other);
        merged.back()[i] = window;
      }
    }
    others.swap(merged);
  }
  return others;
}

}  // namespace

void EncodedRows::clear() {
  ids.clear();
  type_ids.clear();
  special_tokens_mask.clear();
  offsets.clear();
  tokens.clear();
  words.clear();
  sequences.clear();
  ends.clear();
  texts.clear();
  are_cut.clear();
}

void add_rows(const Plan& plan, const TextTokens* texts, const std::vector<Windows>& windows,
              bool overflow, const Requested& requested, std::size_t text, EncodedRows& rows) {
  RowWriter writer(plan, texts, windows, requested, rows);
  writer.write(Combination(plan.encodings.size(), 0), text);
  if (!overflow) return;
  for (const Combination& combination : other_combinations(plan, windows)) {
    writer.write(combination, text);
  }
}

}  // namespace posenc::text
