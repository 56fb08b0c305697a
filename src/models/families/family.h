#pragma once

// What the files of families write their rows with.

#include "models/encoder/layer_settings.h"
#include "models/encoder/names.h"
#include "models/types/model_types.h"

namespace posenc::families {

using embeddings::Norm, embeddings::Order, embeddings::PositionIds, embeddings::Projection;
using encoder::Pooling;
using head::Rows;
using hf::ModelType;
using relative::Grid;
using Rate = EncoderStructure::Rate;

}  // namespace posenc::families
