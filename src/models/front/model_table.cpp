// The model types of transformers 5.23 with the defaults of their configuration classes: adding a
// model is one row. A field that is omitted has the value in FrontSizes or FrontKeys; a front that
// is omitted is the preset's.

#include "models/front/model_table.h"

#include "models/front/builds.h"

namespace posenc {

namespace {

const FrontKeys kClipKeys = {.dropout = "", .pad = ""};
const FrontKeys kGptKeys = {.dropout = "embd_pdrop", .pad = ""};
const FrontKeys kBartKeys = {.eps = "", .dropout = "dropout", .scale = "scale_embedding"};

}  // namespace

const std::vector<FrontModelRow>& front_model_table() {
  using namespace fronts;
  static const std::vector<FrontModelRow> table = {
      // clang-format off
      // bert
      {"bert", "bert", {}},
      {"align_text_model", "bert", {}},
      {"chinese_clip_text_model", "bert", {}},
      {"flava_text_model", "bert", {.dropout = 0.0}},
      {"bros", "bert", {}},
      {"splinter", "bert", {}},
      {"vilt", "bert", {.positions = 40, .dropout = 0.0, .pad = std::nullopt}},
      {"visual_bert", "bert", {.pad = 1}},
      // bert_narrow
      {"albert", "bert_narrow", {.vocab = 30000, .hidden = 4096, .dropout = 0.0,
       .embedding = 128}, {.embedding = "embedding_size"}},
      {"electra", "bert_narrow", {.hidden = 256, .embedding = 128},
       {.embedding = "embedding_size"}, electra},
      {"fnet", "bert_narrow", {.vocab = 32000, .types = 4, .pad = 3}, {}, fnet},
      {"rembert", "bert_narrow", {.vocab = 250300, .hidden = 1152, .dropout = 0.0,
       .embedding = 256}, {.embedding = "input_embedding_size"}},
      // bert_no_norm
      {"megatron-bert", "bert_no_norm", {.vocab = 29056, .hidden = 1024}},
      // bert_offset_2
      {"nystromformer", "bert_offset_2", {.vocab = 30000, .positions = 510, .eps = 1e-5,
       .pad = 1}},
      {"mra", "bert_offset_2", {.vocab = 50265, .types = 1, .eps = 1e-5, .pad = 1}},
      {"yoso", "bert_offset_2", {.vocab = 50265, .positions = 4096, .types = 1, .pad = 1}},
      // bert_tasks
      {"ernie", "bert_tasks", {}},
      // roberta
      {"roberta", "roberta", {.vocab = 50265, .pad = 1}},
      {"altclip_text_model", "roberta", {.vocab = 250002, .hidden = 1024, .positions = 514,
       .types = 1, .eps = 1e-5, .pad = 1}},
      {"bridgetower_text_model", "roberta", {.vocab = 50265, .positions = 514, .types = 1,
       .eps = 1e-5, .pad = 1}},
      {"camembert", "roberta", {.pad = 1}},
      {"clap_text_model", "roberta", {.vocab = 50265, .positions = 514, .types = 1, .pad = 1}},
      {"data2vec-text", "roberta", {.pad = 1}},
      {"lilt", "roberta", {}},
      {"roberta-prelayernorm", "roberta", {.vocab = 50265, .pad = 1}},
      {"xlm-roberta", "roberta", {.pad = 1}},
      {"xmod", "roberta", {.pad = 1}},
      // roberta_no_norm
      {"xlm-roberta-xl", "roberta_no_norm", {.vocab = 250880, .hidden = 2560, .positions = 514,
       .types = 1, .eps = 1e-5, .pad = 1}},
      // squeezebert
      {"squeezebert", "squeezebert", {.embedding = 768}, {.embedding = "embedding_size"}},
      {"convbert", "squeezebert", {.pad = 1, .embedding = 768}, {.embedding = "embedding_size"},
       convbert},
      {"lxmert", "squeezebert", {}, {.eps = "", .pad = ""}, lxmert},
      {"tvp", "squeezebert", {.pad = std::nullopt}, {}, tvp},
      // longformer
      {"longformer", "longformer", {.pad = 1}},
      {"luke", "longformer", {.vocab = 50267, .pad = 1}},
      // distilbert
      {"distilbert", "distilbert", {}, {.eps = "", .dropout = "dropout"}, distilbert_sinusoid},
      {"bert-generation", "distilbert", {.vocab = 50358, .hidden = 1024}},
      {"blip_text_model", "distilbert", {.vocab = 30524, .dropout = 0.0}},
      {"git", "distilbert", {.positions = 1024}},
      {"instructblip_qformer", "distilbert", {}, {}, instructblip},
      {"instructblipvideo_qformer", "distilbert", {}, {}, instructblip},
      // mpnet, whose padding is always 1, regardless of the configuration
      {"mpnet", "mpnet", {.vocab = 30527, .pad = 1}, {.pad = ""}},
      // clip
      {"clip_text_model", "clip", {.vocab = 49408, .hidden = 512, .positions = 77,
       .dropout = 0.0, .pad = std::nullopt}, kClipKeys},
      {"aimv2_text_model", "clip", {.vocab = 49408, .positions = 77, .dropout = 0.0,
       .pad = std::nullopt}, kClipKeys},
      {"clipseg_text_model", "clip", {.vocab = 49408, .hidden = 512, .positions = 77,
       .dropout = 0.0, .pad = std::nullopt}, kClipKeys},
      {"groupvit_text_model", "clip", {.vocab = 49408, .hidden = 256, .positions = 77,
       .dropout = 0.0, .pad = std::nullopt}, kClipKeys},
      {"metaclip_2_text_model", "clip", {.vocab = 49408, .hidden = 512, .positions = 77,
       .dropout = 0.0, .pad = std::nullopt}, kClipKeys},
      {"owlv2_text_model", "clip", {.vocab = 49408, .hidden = 512, .positions = 16,
       .dropout = 0.0, .pad = std::nullopt}, kClipKeys},
      {"owlvit_text_model", "clip", {.vocab = 49408, .hidden = 512, .positions = 16,
       .dropout = 0.0, .pad = std::nullopt}, kClipKeys},
      {"siglip_text_model", "clip", {.vocab = 32000, .positions = 64, .dropout = 0.0,
       .pad = std::nullopt}, kClipKeys},
      {"siglip2_text_model", "clip", {.vocab = 32000, .positions = 64, .dropout = 0.0,
       .pad = std::nullopt}, kClipKeys},
      {"xclip_text_model", "clip", {.vocab = 49408, .hidden = 512, .positions = 77,
       .dropout = 0.0, .pad = std::nullopt}, kClipKeys},
      {"blip_2_qformer", "clip", {.dropout = 0.0}, {.dropout = ""}, blip_2},
      // gpt2
      {"gpt2", "gpt2", {.vocab = 50257, .positions = 1024, .pad = std::nullopt}, kGptKeys},
      {"gpt_bigcode", "gpt2", {.vocab = 50257, .positions = 1024, .pad = std::nullopt},
       kGptKeys},
      {"gpt_neo", "gpt2", {.vocab = 50257, .hidden = 2048, .positions = 2048, .dropout = 0.0,
       .pad = std::nullopt}, {.dropout = "embed_dropout", .pad = ""}},
      {"imagegpt", "gpt2", {.vocab = 513, .hidden = 512, .positions = 1024, .pad = std::nullopt},
       kGptKeys},
      {"openai-gpt", "gpt2", {.vocab = 40478, .pad = std::nullopt}, kGptKeys, gpt},
      // bart
      {"bart", "bart", {.vocab = 50265, .hidden = 1024, .positions = 1024, .eps = 1e-5,
       .pad = 1}, kBartKeys},
      {"bigbird_pegasus", "bart", {.vocab = 96103, .hidden = 1024, .positions = 4096,
       .eps = 1e-5, .scales = true}, kBartKeys, blenderbot},
      {"biogpt", "bart", {.vocab = 42384, .hidden = 1024, .positions = 1024, .pad = 1,
       .scales = true}, {.scale = "scale_embedding"}, biogpt},
      {"blenderbot", "bart", {.vocab = 8008, .hidden = 2560, .positions = 128, .eps = 1e-5},
       kBartKeys, blenderbot},
      {"blenderbot-small", "bart", {.vocab = 50265, .hidden = 512, .eps = 1e-5}, kBartKeys, led},
      {"led", "bart", {.vocab = 50265, .hidden = 1024, .positions = 16384, .eps = 1e-5,
       .pad = 1}, {.positions = "max_encoder_position_embeddings", .eps = "", .dropout = "dropout"}, led},
      {"mbart", "bart", {.vocab = 50265, .hidden = 1024, .positions = 1024, .eps = 1e-5,
       .pad = 1}, kBartKeys},
      {"mvp", "bart", {.vocab = 50267, .hidden = 1024, .positions = 1024, .eps = 1e-5, .pad = 1},
       kBartKeys},
      {"plbart", "bart", {.vocab = 50005, .positions = 1024, .eps = 1e-5, .pad = 1,
       .scales = true}, kBartKeys},
      {"pp_formulanet_text", "bart", {.vocab = 50000, .hidden = 512, .positions = 2560,
       .eps = 1e-5, .pad = 1, .scales = true}, kBartKeys, pp_formulanet},
      {"trocr", "bart", {.vocab = 50265, .hidden = 1024, .eps = 1e-5, .pad = 1}, kBartKeys,
       trocr},
      // opt
      {"opt", "opt", {.vocab = 50272, .positions = 2048, .dropout = 0.0, .pad = 1,
       .embedding = 768}, {.dropout = "", .embedding = "word_embed_proj_dim"}},
      // nomic
      {"nomic_bert", "nomic", {.vocab = 30528, .dropout = 0.0}},
      {"funnel", "nomic", {.eps = 1e-9, .pad = std::nullopt}, {.dropout = "hidden_dropout"}, funnel},
      {"gte", "nomic", {.vocab = 250048, .types = 1, .pad = 1, .types_optional = true}},
      {"jina_embeddings_v3", "nomic", {.vocab = 250002, .hidden = 1024, .types = 1, .eps = 1e-5,
       .pad = 1}},
      {"modernbert", "nomic", {.vocab = 50368, .eps = 1e-5, .dropout = 0.0, .pad = 50283},
       {.eps = "norm_eps", .dropout = "embedding_dropout"}, modernbert},
      {"modernbert-decoder", "nomic", {.vocab = 50368, .eps = 1e-5, .dropout = 0.0,
       .pad = 50283}, {.eps = "norm_eps", .dropout = "embedding_dropout"}, modernbert},
      {"roformer", "nomic", {.vocab = 50000, .embedding = 768}, {.embedding = "embedding_size"},
       roformer},
      // big_bird
      {"big_bird", "big_bird", {.vocab = 50358, .positions = 4096},
       {.scale = "rescale_embeddings"}},
      // clang-format on
  };
  return table;
}

const std::vector<FrontPresetRow>& front_preset_table() {
  using namespace fronts;
  static const std::vector<FrontPresetRow> table = {
      {"bert", "BertEmbeddings", "drop(LN((tok + typ) + pos))", bert},
      {"bert_narrow", "AlbertEmbeddings, FNetEmbeddings",
       "proj(drop(LN((tok + typ) + pos))); FNet: drop(proj(LN(...)))", bert_narrow},
      {"bert_no_norm", "MegatronBertEmbeddings", "drop((tok + typ) + pos)", bert_no_norm},
      {"bert_offset_2", "NystromformerEmbeddings", "as bert, positions from 2", bert_offset_2},
      {"bert_tasks", "ErnieEmbeddings",
       "drop(LN(((tok + typ) + pos) + task)); as bert without use_task_id", bert_tasks},
      {"roberta", "RobertaEmbeddings", "as bert, positions from the ids, padding apart", roberta},
      {"roberta_no_norm", "XLMRobertaXLEmbeddings", "drop((tok + typ) + pos), positions as roberta",
       roberta_no_norm},
      {"squeezebert", "SqueezeBertEmbeddings", "drop(LN((tok + pos) + typ))", squeezebert},
      {"longformer", "LongformerEmbeddings", "as squeezebert, positions as roberta", longformer},
      {"distilbert", "DistilBERT's Embeddings", "drop(LN(tok + pos))", distilbert},
      {"mpnet", "MPNetEmbeddings", "as distilbert, positions as roberta with padding 1", mpnet},
      {"clip", "CLIPTextEmbeddings", "tok + pos", clip},
      {"gpt2", "GPT2Model", "drop((tok + pos) + tok[types]), types only where given", gpt2},
      {"bart", "BartEncoder",
       "drop(LN(tok * s + pos)), positions from row 2; LED, Blenderbot: from row 0; BioGPT, "
       "Blenderbot, BigBird-Pegasus: no norm",
       bart},
      {"opt", "OPTDecoder", "proj(tok) + pos, positions from the mask, from row 2", opt},
      {"nomic", "NomicBertEmbeddings",
       "drop(LN(tok + typ)); ModernBERT, Funnel: no types; RoFormer: proj", nomic},
      {"big_bird", "BigBirdEmbeddings", "LN(drop((tok * s + typ) + pos))", big_bird},
  };
  return table;
}

}  // namespace posenc
