#pragma once

#include "models/encoder/config.h"
#include "posenc/weights/state_dict.h"

namespace posenc {

/// What a folder has beside its encoder: the tensors of a head, of a decoder or of a second
/// encoder, all in float32, and how the encoder's are called there. Copies of the table of tokens
/// are left out where transformers ties them to it.
struct RestOfFolder {
  StateDict tensors;
  encoder::Origin origin;
};

/// Reads it for an encoder like the one that is described. Throws WeightsError.
RestOfFolder rest_of_folder(const EncoderConfig& config, const std::string& folder);

}  // namespace posenc
