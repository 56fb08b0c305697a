#pragma once

// The tensors of a folder that are not the encoder's own, or not as the encoder has them.

#include "models/encoder/config.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"

namespace posenc {

/// The tensors of an encoder, or rows of them, under their names in its file; they share its
/// memory. Those that a rule changes are as the model has them.
StateDict encoder_parts(const EncoderImpl& model, const EncoderConfig& config);

/// The same for an encoder-decoder of that type, without the matrices of its vocabulary.
StateDict seq2seq_parts(const TransformerImpl& model, const hf::ModelType& type,
                        const TransformerOptions& options);

/// Undoes what the rules of `names` change besides names, where a file has a weight otherwise than
/// the model. Throws c10::ValueError for a weight that is not zero between the groups that it has
/// there.
void change_back(StateDict& tensors, const LoadOptions& names);

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
