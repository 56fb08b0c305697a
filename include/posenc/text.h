#pragma once

// The component posenc::text. SentenceEncoder, TextClassifier, stop strings and streamed text:
// texts through models.

#include "posenc/text/error.h"
#include "posenc/text/generation.h"
#include "posenc/text/sentence_encoder.h"
#include "posenc/text/text_classifier.h"
#include "posenc/text/text_labels.h"
#include "posenc/text/tokenizer.h"
#include "posenc/tokenizers/tensors.h"
