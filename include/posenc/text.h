#pragma once

// The component posenc::text. SentenceEncoder, SparseEncoder, MultiVectorEncoder, Reranker,
// TextClassifier, TextGenerator, ChatTemplate, stop strings and streamed text: texts through
// models.

#include "posenc/text/chat_template.h"
#include "posenc/text/generation.h"
#include "posenc/text/multi_vector_encoder.h"
#include "posenc/text/reranker.h"
#include "posenc/text/sentence_encoder.h"
#include "posenc/text/sparse_encoder.h"
#include "posenc/text/text_classifier.h"
#include "posenc/text/text_generator.h"
#include "posenc/text/text_labels.h"
#include "posenc/tokenizers/tensors.h"
