#include "cli/label_lines.h"

#include <algorithm>

#include "cli/error.h"
#include "posenc/models/inspect_folder.h"

namespace posenc::cli {
namespace {

using head::Kind;

const char* kind_in_words(Kind kind) {
  switch (kind) {
    case Kind::Sequence: return "labels for sequences";
    case Kind::Token: return "labels for tokens";
    case Kind::Question: return "answers to questions";
    case Kind::Masked: return "words for masks";
    case Kind::Image: return "labels for images";
    case Kind::Choice: break;
  }
  return "choices";
}

}  // namespace

void refuse_other_heads(const std::string& command, const std::string& folder,
                        const LoadOptions& load, const std::vector<Kind>& kinds) {
  const auto kind = inspect_head(read_cross_encoder_folder(folder, load.base()).model, load);
  if (!kind || std::find(kinds.begin(), kinds.end(), *kind) != kinds.end()) return;
  std::string expected;
  for (const Kind one : kinds)
    expected += (expected.empty() ? "" : " or ") + std::string(kind_in_words(one));
  fail("{}: posenc {} must be given a model with {}. Got one with {}", folder, command, expected,
       kind_in_words(*kind));
}

CutLines::~CutLines() {
  if (count_ == 0) return;
  print_error("posenc {}: {} {} cut to the {} tokens that the model takes\n", command_, count_,
              count_ == 1 ? "line was" : "lines were", most_tokens_.value_or(0));
}

}  // namespace posenc::cli
