#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/definition/definition.h"
#include "tokenizers/definition/json_cursor.h"

namespace posenc::text {
namespace {

using nlohmann::json;
using Kind = ModelDefinition::Kind;

constexpr std::string_view kWhat = "its model";

[[noreturn]] void wrong(const std::string& part, const std::string& rule, std::string_view value) {
  throw TokenizerError("model." + part + ": must " + rule + ". Got " + io::in_quotes(value));
}

uint32_t id_of(std::string_view number, std::string_view token) {
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), id);
  if (error == std::errc() && end == number.data() + number.size()) return id;
  throw TokenizerError("model.vocab: must have integers below 2^32 as ids. Got " +
                       std::string(number) + " for " + io::in_quotes(token));
}

void read_vocab(JsonCursor& cursor, Definition& definition) {
  std::vector<Piece>& vocab = definition.model.vocab;
  vocab.clear();
  cursor.object([&](std::string_view token) {
    const std::string_view stored = definition.strings->keep(token);
    vocab.push_back({stored, id_of(cursor.number(), stored)});
  });
}

// Multiplies by 10^exponent as serde_json does without its feature `float_roundtrip`: by one power
// of ten, which rounds twice. Ties between paths depend on it.
double scaled(uint64_t digits, int exponent) {
  static const auto powers = [] {
    std::array<double, 309> table{};
    for (int i = 0; i < 309; ++i) {
      const std::string text = "1e" + std::to_string(i);
      std::from_chars(text.data(), text.data() + text.size(), table[static_cast<std::size_t>(i)]);
    }
    return table;
  }();
  auto value = static_cast<double>(digits);
  while (exponent < -308 && value != 0) {
    value /= 1e308;
    exponent += 308;
  }
  if (value == 0) return value;
  if (exponent > 308) return HUGE_VAL;
  return exponent < 0 ? value / powers[static_cast<std::size_t>(-exponent)]
                      : value * powers[static_cast<std::size_t>(exponent)];
}

void read_pieces(JsonCursor& cursor, Definition& definition) {
  ModelDefinition& model = definition.model;
  model.vocab.clear();
  model.scores.clear();
  model.exact_scores.clear();
  cursor.array([&] {
    std::string_view piece;
    int read = 0;
    cursor.array([&] {
      if (++read == 1) {
        piece = definition.strings->keep(cursor.string());
        return;
      }
      const std::string_view number = cursor.number();
      if (read > 2) wrong("vocab", "have a piece and a score in each entry", piece);
      const double score = serde_score(number);
      double exact = 0;
      std::from_chars(number.data(), number.data() + number.size(), exact);
      if (std::isinf(score)) wrong("vocab", "have scores that a double holds", number);
      model.scores.push_back(score);
      model.exact_scores.push_back(exact);
    });
    if (read != 2) wrong("vocab", "have a piece and a score in each entry", piece);
    model.vocab.push_back({piece, static_cast<uint32_t>(model.vocab.size())});
  });
}

void read_merges(JsonCursor& cursor, Definition& definition) {
  std::vector<Merge>& merges = definition.model.merges;
  merges.clear();
  std::optional<bool> are_pairs;
  cursor.array([&] {
    const bool is_pair = cursor.next_is('[');
    if (are_pairs.value_or(is_pair) != is_pair)
      wrong("merges", "be all strings or all pairs", is_pair ? "a pair" : "a string");
    are_pairs = is_pair;
    if (!is_pair) {
      const std::string_view line = cursor.string();
      constexpr std::string_view kHeader = "#version";
      if (line.substr(0, kHeader.size()) != kHeader)
        merges.push_back(split_merge(definition.merge_strings->keep(line)));
      return;
    }
    std::string_view sides[2];
    std::size_t read = 0;
    cursor.array([&] {
      const std::string_view side = definition.merge_strings->keep(cursor.string());
      if (read < 2) sides[read] = side;
      ++read;
    });
    if (read != 2) wrong("merges", "have two tokens in each entry", sides[0]);
    merges.push_back({sides[0], sides[1]});
  });
}

// What a model consists of. The long parts are read where they are if `type` comes before them,
// as it does in all files that the package writes; otherwise this is where they begin. Of two equal
// names the last counts.
struct Parts {
  json options = json::object();
  std::optional<JsonCursor> vocab, merges;
};

Kind kind_of(const Component& options, Parts& parts) {
  if (options.has("type")) {
    const std::string type = options.string("type");
    if (type == "BPE") return Kind::Bpe;
    if (type == "WordPiece") return Kind::WordPiece;
    if (type == "WordLevel") return Kind::WordLevel;
    if (type == "Unigram") return Kind::Unigram;
    options.refuse("type", "BPE, WordPiece, WordLevel or Unigram");
  }
  // The package tries them in this order.
  if (!parts.vocab || !parts.vocab->next_is('{')) return Kind::Unigram;
  if (parts.merges) return Kind::Bpe;
  const bool is_word_piece =
      options.has("max_input_chars_per_word") && options.has("continuing_subword_prefix");
  return is_word_piece ? Kind::WordPiece : Kind::WordLevel;
}

void read_options(const Component& options, ModelDefinition& model) {
  const auto flag = [&](const char* name) {
    return options.optional_boolean(name).value_or(false);
  };
  switch (model.kind) {
    case Kind::Bpe: {
      const json& dropout = options.at("dropout");
      if (!dropout.is_null() && !(dropout.is_number() && dropout.get<double>() == 0)) {
        options.refuse("dropout", "null or 0, since others give random tokens");
      }
      model.unk_token = options.optional_string("unk_token");
      model.continuing_subword_prefix =
          options.optional_string("continuing_subword_prefix").value_or("");
      model.end_of_word_suffix = options.optional_string("end_of_word_suffix").value_or("");
      model.fuse_unk = flag("fuse_unk");
      model.byte_fallback = flag("byte_fallback");
      model.ignore_merges = flag("ignore_merges");
      return;
    }
    case Kind::WordPiece:
      model.unk_token = options.string("unk_token");
      model.continuing_subword_prefix = options.string("continuing_subword_prefix");
      model.max_input_chars_per_word = options.number("max_input_chars_per_word");
      return;
    case Kind::WordLevel: model.unk_token = options.string("unk_token"); return;
    case Kind::Unigram:
      model.unk_id = options.optional_number("unk_id");
      if (options.has("byte_fallback")) model.byte_fallback = options.boolean("byte_fallback");
      return;
  }
}

void read_vocabulary(JsonCursor& cursor, Definition& definition) {
  if (definition.model.kind == Kind::Unigram) {
    read_pieces(cursor, definition);
  } else {
    read_vocab(cursor, definition);
  }
}

}  // namespace

double serde_score(std::string_view number) {
  const bool is_negative = number.front() == '-';
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool is_full = false, is_fraction = false;
  std::size_t at = is_negative ? 1 : 0;
  for (; at < number.size() && number[at] != 'e' && number[at] != 'E'; ++at) {
    if (number[at] == '.') {
      // Digits of a fraction are taken up again after a long whole part, if they fit.
      is_fraction = true;
      is_full = false;
      continue;
    }
    const auto digit = static_cast<uint64_t>(number[at] - '0');
    is_full = is_full || digits > (UINT64_MAX - digit) / 10;
    if (!is_full) {
      digits = digits * 10 + digit;
      exponent -= is_fraction ? 1 : 0;
    } else {
      exponent += is_fraction ? 0 : 1;
    }
  }
  if (at < number.size()) {
    constexpr int64_t kMost = 1'000'000;
    const bool is_down = number[++at] == '-';
    if (number[at] == '-' || number[at] == '+') ++at;
    int64_t written = 0;
    for (; at < number.size(); ++at) written = std::min(kMost, written * 10 + (number[at] - '0'));
    exponent += is_down ? -written : written;
  }
  constexpr int64_t kFar = 2'000'000;
  const double value = scaled(digits, static_cast<int>(std::clamp(exponent, -kFar, kFar)));
  return is_negative ? -value : value;
}

void read_vocabulary(std::string_view json, Definition& definition) {
  JsonCursor cursor(json, "the vocabulary");
  read_vocab(cursor, definition);
  cursor.end();
}

Merge split_merge(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos || line.find(' ', blank + 1) != std::string_view::npos) {
    wrong("merges", "have two tokens, parted by one blank, in each string", line);
  }
  return {line.substr(0, blank), line.substr(blank + 1)};
}

void read_model(JsonCursor& cursor, Definition& definition) {
  definition.model = {};
  ModelDefinition& model = definition.model;
  Parts parts;
  bool is_kind_known = false;
  cursor.object([&](std::string_view key) {
    if (key == "vocab") {
      parts.vocab = cursor;
      return is_kind_known ? read_vocabulary(cursor, definition) : static_cast<void>(cursor.raw());
    }
    if (key == "merges") {
      parts.merges = cursor;
      return is_kind_known && model.kind == Kind::Bpe ? read_merges(cursor, definition)
                                                      : static_cast<void>(cursor.raw());
    }
    const std::string name(key);
    parts.options[name] = cursor.value();
    if (name == "type" && !parts.vocab && !parts.merges) {
      model.kind = kind_of(Component("model", parts.options), parts);
      is_kind_known = true;
    }
  });
  const Component options("model", parts.options);
  if (!is_kind_known) model.kind = kind_of(options, parts);
  read_options(options, model);
  const auto need = [](const char* name, std::optional<JsonCursor>& part) -> JsonCursor& {
    if (!part) throw TokenizerError("model: must have `" + std::string(name) + "`. It is missing");
    return *part;
  };
  JsonCursor& vocab = need("vocab", parts.vocab);
  if (!is_kind_known) read_vocabulary(vocab, definition);
  if (model.kind != Kind::Bpe) return;
  JsonCursor& merges = need("merges", parts.merges);
  if (!is_kind_known) read_merges(merges, definition);
}

void read_model(std::string_view text, Definition& definition) {
  JsonCursor cursor(text, kWhat);
  read_model(cursor, definition);
  cursor.end();
}

}  // namespace posenc::text
