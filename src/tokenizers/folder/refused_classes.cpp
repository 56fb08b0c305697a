#include "tokenizers/folder/tokenizer_class.h"

#include <algorithm>

namespace posenc::text {
namespace {

struct RefusedClass {
  std::string_view name, reason;
};

constexpr std::string_view kBoxes = "whose words have boxes, which a text has not";
constexpr std::string_view kMoses = "which cuts words with the package sacremoses";
constexpr RefusedClass kRefused[] = {
    {"BertJapaneseTokenizer", "which cuts words with MeCab, Sudachi or Juman"},
    {"BioGptTokenizer", kMoses},
    {"CpmAntTokenizer", "which cuts words with the package rjieba"},
    {"CpmTokenizer", "which cuts words with the package rjieba"},
    {"FSMTTokenizer", kMoses},
    {"FlaubertTokenizer", kMoses},
    {"LayoutLMv2Tokenizer", kBoxes},
    {"LayoutLMv3Tokenizer", kBoxes},
    {"LayoutXLMTokenizer", kBoxes},
    {"LukeTokenizer", "which takes entities beside a text"},
    {"MLukeTokenizer", "which takes entities beside a text"},
    {"MarkupLMTokenizer", "which takes nodes of a page and not a text"},
    {"RagTokenizer", "which is two tokenizers"},
    {"RoFormerTokenizer", "which cuts words with the package rjieba"},
    {"TapasTokenizer", "which takes a table beside a text"},
    {"UdopTokenizer", kBoxes},
    {"Wav2Vec2PhonemeCTCTokenizer", "which writes phonemes with the package phonemizer"},
    {"XLMTokenizer", kMoses},
};

}  // namespace

std::string refused_class(std::string_view tokenizer_class) {
  const auto* const found = std::ranges::find(kRefused, tokenizer_class, &RefusedClass::name);
  std::string text(tokenizer_class);
  if (found != std::end(kRefused)) text.append(", ").append(found->reason);
  return text;
}

}  // namespace posenc::text
