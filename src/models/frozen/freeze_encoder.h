#pragma once

#include "inference/freeze/model.h"
#include "inference/linear/weight_converter.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::inference {

/// The encoder inside a model whose parameters `convert` was made for. `multiplied`: the table of
/// tokens, if the model multiplies by it as well; else undefined.
FrozenEncoder freeze_part(const EncoderImpl& model, WeightConverter& convert,
                          const at::Tensor& multiplied = {});

/// freeze() by a converter that was made for the model.
FrozenEncoder freeze_by(const EncoderImpl& model, WeightConverter& convert);
FrozenClassifier freeze_by(const ClassifierImpl& model, WeightConverter& convert);

/// What a file of it is made of.
const FrozenSource& source_of(const FrozenEncoder& frozen);
const FrozenSource& source_of(const FrozenClassifier& frozen);
/// The check of its source; a Classifier's is of all but the encoder.
const StaleCheck& check_of(const FrozenEncoder& frozen);
const StaleCheck& check_of(const FrozenClassifier& frozen);

}  // namespace posenc::inference
