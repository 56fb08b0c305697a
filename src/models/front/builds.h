#pragma once

#include "models/settings.h"
#include "posenc/nn/embedding_front_options.h"

// The functions that make fronts; see BuildFront. If its preset does not fully determine a front,
// the row of a model type names one of these.
namespace posenc::fronts {

void bert(const Settings& config, EmbeddingFrontOptions& options);
void bert_narrow(const Settings& config, EmbeddingFrontOptions& options);
void bert_no_norm(const Settings& config, EmbeddingFrontOptions& options);
void bert_offset_2(const Settings& config, EmbeddingFrontOptions& options);
void bert_tasks(const Settings& config, EmbeddingFrontOptions& options);
void big_bird(const Settings& config, EmbeddingFrontOptions& options);
void electra(const Settings& config, EmbeddingFrontOptions& options);
void fnet(const Settings& config, EmbeddingFrontOptions& options);

void roberta(const Settings& config, EmbeddingFrontOptions& options);
void roberta_no_norm(const Settings& config, EmbeddingFrontOptions& options);
void longformer(const Settings& config, EmbeddingFrontOptions& options);
void mpnet(const Settings& config, EmbeddingFrontOptions& options);

void squeezebert(const Settings& config, EmbeddingFrontOptions& options);
void convbert(const Settings& config, EmbeddingFrontOptions& options);
void lxmert(const Settings& config, EmbeddingFrontOptions& options);
void tvp(const Settings& config, EmbeddingFrontOptions& options);

void distilbert(const Settings& config, EmbeddingFrontOptions& options);
void distilbert_sinusoid(const Settings& config, EmbeddingFrontOptions& options);
void instructblip(const Settings& config, EmbeddingFrontOptions& options);
void clip(const Settings& config, EmbeddingFrontOptions& options);
void blip_2(const Settings& config, EmbeddingFrontOptions& options);
void gpt(const Settings& config, EmbeddingFrontOptions& options);
void gpt2(const Settings& config, EmbeddingFrontOptions& options);

void bart(const Settings& config, EmbeddingFrontOptions& options);
void biogpt(const Settings& config, EmbeddingFrontOptions& options);
void blenderbot(const Settings& config, EmbeddingFrontOptions& options);
void led(const Settings& config, EmbeddingFrontOptions& options);
void opt(const Settings& config, EmbeddingFrontOptions& options);
void pp_formulanet(const Settings& config, EmbeddingFrontOptions& options);
void trocr(const Settings& config, EmbeddingFrontOptions& options);

void nomic(const Settings& config, EmbeddingFrontOptions& options);
void gte(const Settings& config, EmbeddingFrontOptions& options);
void funnel(const Settings& config, EmbeddingFrontOptions& options);
void modernbert(const Settings& config, EmbeddingFrontOptions& options);
void roformer(const Settings& config, EmbeddingFrontOptions& options);

}  // namespace posenc::fronts
