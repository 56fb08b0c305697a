#pragma once

#include <string>
#include <vector>

namespace posenc {

// Folders that sentence-transformers wrote: their modules.json lists the stages that make a vector
// of a text, of which the first is an encoder. All functions throw WeightsError, naming the public
// function `caller`, for a modules.json that does not list stages.

/// Whether `folder` is a sentence-transformers model, or the folder of its encoder.
bool is_sentence_model(const char* caller, const std::string& folder);

/// What comes after the encoder, such as `Pooling (mean_tokens)`, `Dense (2_Dense)` and
/// `Normalize`; nothing for other folders.
std::vector<std::string> stages_after_encoder(const char* caller, const std::string& folder);

/// The folder of the model that texts without a task go through first, if a Router chooses it, and
/// otherwise `folder`.
std::string folder_of_model(const char* caller, const std::string& folder);

/// Throws WeightsError, which says where the encoder is, for a model that has it in a folder of its
/// own.
void check_holds_encoder(const char* caller, const std::string& folder);

}  // namespace posenc
