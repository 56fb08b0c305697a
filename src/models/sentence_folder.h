#pragma once

#include <string>
#include <vector>

namespace posenc {

/// A stage of a folder that sentence-transformers wrote, as modules.json lists it.
struct SentenceStage {
  std::string kind;  ///< such as `Transformer`, `Pooling`, `Dense` and `Normalize`
  std::string path;  ///< its folder within; empty for the folder itself
};

/// The stages of the sentence-transformers model that `folder` is, or that has `folder` as its
/// encoder; none for other folders. Throws WeightsError, naming the public function `caller`, for a
/// modules.json that does not list stages.
std::vector<SentenceStage> sentence_stages(const char* caller, const std::string& folder);

/// What comes after the encoder, such as `Pooling (mean_tokens)`, `Dense (2_Dense)` and
/// `Normalize`; none for other folders. Throws the same.
std::vector<std::string> stages_after_encoder(const char* caller, const std::string& folder);

/// Throws WeightsError, which says where the encoder is, for a folder of sentence-transformers that
/// has the encoder in a folder of its own.
void check_holds_encoder(const char* caller, const std::string& folder);

}  // namespace posenc
