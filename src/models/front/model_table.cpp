// The model types of transformers 5.23 whose fronts are known: adding a model is one row. Its sizes
// are those of its configuration class. A front that is omitted is the preset's.

#include "models/front/model_table.h"

#include "models/front/builds.h"

namespace posenc {

const std::vector<FrontModelRow>& front_model_table() {
  using namespace fronts;
  static const std::vector<FrontModelRow> table = {
      // clang-format off
      // bert
      {"bert", "bert"},
      {"align_text_model", "bert"},
      {"chinese_clip_text_model", "bert"},
      {"flava_text_model", "bert"},
      {"bros", "bert"},
      {"splinter", "bert"},
      {"vilt", "bert"},
      {"visual_bert", "bert"},
      // bert_narrow
      {"albert", "bert_narrow"},
      {"electra", "bert_narrow", electra},
      {"fnet", "bert_narrow", fnet},
      {"rembert", "bert_narrow"},
      // bert_no_norm
      {"megatron-bert", "bert_no_norm"},
      // bert_offset_2
      {"nystromformer", "bert_offset_2"},
      {"mra", "bert_offset_2"},
      {"yoso", "bert_offset_2"},
      // bert_tasks
      {"ernie", "bert_tasks"},
      // roberta
      {"roberta", "roberta"},
      {"altclip_text_model", "roberta"},
      {"bridgetower_text_model", "roberta"},
      {"camembert", "roberta"},
      {"clap_text_model", "roberta"},
      {"data2vec-text", "roberta"},
      {"lilt", "roberta"},
      {"roberta-prelayernorm", "roberta"},
      {"xlm-roberta", "roberta"},
      {"xmod", "roberta"},
      // roberta_no_norm
      {"xlm-roberta-xl", "roberta_no_norm"},
      // squeezebert
      {"squeezebert", "squeezebert"},
      {"convbert", "squeezebert", convbert},
      {"lxmert", "squeezebert", lxmert},
      {"tvp", "squeezebert", tvp},
      // longformer
      {"longformer", "longformer"},
      {"luke", "longformer"},
      // distilbert
      {"distilbert", "distilbert", distilbert_sinusoid},
      {"bert-generation", "distilbert"},
      {"blip_text_model", "distilbert"},
      {"git", "distilbert"},
      {"instructblip_qformer", "distilbert", instructblip},
      {"instructblipvideo_qformer", "distilbert", instructblip},
      // mpnet
      {"mpnet", "mpnet"},
      // clip
      {"clip_text_model", "clip"},
      {"aimv2_text_model", "clip"},
      {"clipseg_text_model", "clip"},
      {"groupvit_text_model", "clip"},
      {"metaclip_2_text_model", "clip"},
      {"owlv2_text_model", "clip"},
      {"owlvit_text_model", "clip"},
      {"siglip_text_model", "clip"},
      {"siglip2_text_model", "clip"},
      {"xclip_text_model", "clip"},
      {"blip_2_qformer", "clip", blip_2},
      // gpt2
      {"gpt2", "gpt2"},
      {"gpt_bigcode", "gpt2"},
      {"gpt_neo", "gpt2"},
      {"imagegpt", "gpt2"},
      {"openai-gpt", "gpt2", gpt},
      // bart
      {"bart", "bart"},
      {"bigbird_pegasus", "bart", blenderbot},
      {"biogpt", "bart", biogpt},
      {"blenderbot", "bart", blenderbot},
      {"blenderbot-small", "bart", led},
      {"led", "bart", led},
      {"mbart", "bart"},
      {"mvp", "bart"},
      {"plbart", "bart"},
      {"pp_formulanet_text", "bart", pp_formulanet},
      {"trocr", "bart", trocr},
      // opt
      {"opt", "opt"},
      // nomic
      {"nomic_bert", "nomic"},
      {"funnel", "nomic", funnel},
      {"gte", "nomic", gte},
      {"jina_embeddings_v3", "nomic"},
      {"modernbert", "nomic", modernbert},
      {"modernbert-decoder", "nomic", modernbert},
      {"roformer", "nomic", roformer},
      // big_bird
      {"big_bird", "big_bird"},
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
