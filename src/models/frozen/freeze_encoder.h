#pragma once

#include "inference/freeze/model.h"
#include "inference/linear/weight_converter.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_decoder.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::inference {

/// The encoder inside a model whose parameters `convert` was made for. `multiplied`: the table of
/// tokens, if the model multiplies by it as well; else undefined.
FrozenEncoder freeze_part(const EncoderImpl& model, WeightConverter& convert,
                          const at::Tensor& multiplied = {});

/// The same encoder with Pooling::None.
FrozenEncoder without_pooling(const FrozenEncoder& model);

/// What a causal encoder makes of tokens.
struct CausalRows {
  at::Tensor embeddings;            ///< (rows, D)
  at::Tensor hidden;                ///< (rows, D'), after the last norm
  std::vector<at::Tensor> outputs;  ///< of each layer (rows, D), where they are wanted
};
/// Computes the rows of `packing`, which has Packing::past, from their ids (rows). They attend to
/// the tokens in `cache` too, which has begun a call for them; null: there are none. `used_rows`:
/// those that the caller reads; null: all.
CausalRows causal_rows(const FrozenEncoder& model, const at::Tensor& ids, const Packing& packing,
                       TokenCache* cache = nullptr, bool wants_outputs = false,
                       const std::vector<int64_t>* used_rows = nullptr);
/// What a cache for it needs. Throws c10::ValueError for layers whose tokens depend on others by
/// more than an attention's keys and values.
CacheNeeds cache_needs(const FrozenEncoder& model);

/// freeze() by a converter that was made for the model.
FrozenEncoder freeze_by(const EncoderImpl& model, WeightConverter& convert);
FrozenClassifier freeze_by(const ClassifierImpl& model, WeightConverter& convert);
FrozenDecoder freeze_by(const DecoderImpl& model, WeightConverter& convert);

/// What a file of it is made of.
const FrozenSource& source_of(const FrozenEncoder& frozen);
const FrozenSource& source_of(const FrozenClassifier& frozen);
const FrozenSource& source_of(const FrozenDecoder& frozen);
/// The check of its source; a Classifier's or Decoder's is of all but the encoder below.
const StaleCheck& check_of(const FrozenEncoder& frozen);
const StaleCheck& check_of(const FrozenClassifier& frozen);
const StaleCheck& check_of(const FrozenDecoder& frozen);
/// The encoder below.
const FrozenEncoder& model_of(const FrozenDecoder& frozen);

}  // namespace posenc::inference
