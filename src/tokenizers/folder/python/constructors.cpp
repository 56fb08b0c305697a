#include "tokenizers/folder/python/constructors.h"

namespace posenc::text {

PythonConstructor python_constructor(std::string_view name) {
  if (name == "BertGenerationTokenizer") return construct_bert_generation;
  if (name == "ByT5Tokenizer") return construct_byt5;
  if (name == "CTRLTokenizer") return construct_ctrl;
  if (name == "CanineTokenizer") return construct_canine;
  if (name == "EsmTokenizer") return construct_esm;
  if (name == "M2M100Tokenizer") return construct_m2m100;
  if (name == "MarianTokenizer") return construct_marian;
  if (name == "PerceiverTokenizer") return construct_perceiver;
  if (name == "PhobertTokenizer") return construct_phobert;
  if (name == "SiglipTokenizer") return construct_siglip;
  if (name == "Speech2TextTokenizer") return construct_speech2text;
  if (name == "SpeechT5Tokenizer") return construct_speecht5;
  if (name == "Wav2Vec2CTCTokenizer") return construct_wav2vec2_ctc;
  return nullptr;
}

}  // namespace posenc::text
