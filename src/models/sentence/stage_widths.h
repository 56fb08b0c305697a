#pragma once

#include <cstdint>

#include "posenc/models/sentence_stages.h"

namespace posenc {

/// Widths of what the stages make; zero: there is no such feature.
struct StageWidths {
  int64_t tokens = 0, sentence = 0;

  int64_t& of(sentence::Feature feature) {
    return feature == sentence::Feature::Tokens ? tokens : sentence;
  }
};

/// The widths after all stages. Throws c10::ValueError, naming SentenceStages, for a stage that
/// reads what no stage has made, or something of another width.
StageWidths widths_after(const SentenceStagesOptions& options);

}  // namespace posenc
