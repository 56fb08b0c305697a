#pragma once

#include <string_view>

#include "tokenizers/folder/python_builder.h"

/// The constructors of those classes of transformers 5.23 that are written in Python.
namespace posenc::text {

using PythonConstructor = void (*)(PythonBuilder&);

/// The constructor of a class; null for one that is not supported.
PythonConstructor python_constructor(std::string_view tokenizer_class);

void construct_bert_generation(PythonBuilder& builder);
void construct_byt5(PythonBuilder& builder);
void construct_canine(PythonBuilder& builder);
void construct_ctrl(PythonBuilder& builder);
void construct_esm(PythonBuilder& builder);
void construct_m2m100(PythonBuilder& builder);
void construct_marian(PythonBuilder& builder);
void construct_perceiver(PythonBuilder& builder);
void construct_phobert(PythonBuilder& builder);
void construct_siglip(PythonBuilder& builder);
void construct_speech2text(PythonBuilder& builder);
void construct_speecht5(PythonBuilder& builder);
void construct_wav2vec2_ctc(PythonBuilder& builder);

}  // namespace posenc::text
