#pragma once

// The component posenc::models. Models from their folders: encoders, heads, encoder-decoders,
// stages, saving.

#include "posenc/models/adapter_set.h"
#include "posenc/models/attention_pooling.h"
#include "posenc/models/classifier.h"
#include "posenc/models/dual_encoder.h"
#include "posenc/models/encoder.h"
#include "posenc/models/encoder_embeddings_preset.h"
#include "posenc/models/encoder_head.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/frozen_file.h"
#include "posenc/models/functional/pooling.h"
#include "posenc/models/generation_config.h"
#include "posenc/models/lora.h"
#include "posenc/models/relative_config.h"
#include "posenc/models/rotary_config.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/models/save_sentence_model.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/models/sentence_route.h"
#include "posenc/models/sentence_stage.h"
#include "posenc/models/sentence_stages.h"
#include "posenc/models/seq2seq.h"
#include "posenc/models/vision_embeddings_preset.h"
