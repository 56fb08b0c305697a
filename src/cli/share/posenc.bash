# Completion of posenc for bash; written by tools/command_line_doc.py
_posenc() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options= words=
  COMPREPLY=()
  if [ "$current" = = ]; then current=; fi
  if [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W 'version help verify run table rotary presets identify plot inspect convert encode translate -h --help -V --version' -- "$current"))
    return
  fi
  case $previous in
    --layout) words='bhld blhd' ;;
    --module) words='TokenEmbedding TransformerEmbedding Embedding PositionalEncoding PositionEmbedding MyPositionEncoding InputEmbedding TokenAndPositionEmbedding TimestepEmbedding TransformerEncoder TransformerDecoder Transformer RMSNorm GemmaRMSNorm GatedFeedForward GemmaMLP RotaryEmbedding' ;;
    --precision) words='reference exact' ;;
    --preset) words='notebook_000 notebook_003 annotated_transformer pytorch_tutorial labml espnet opennmt_py speechbrain joeynmt bert_pytorch informer autoformer wenet nemo_asr fairseq_conformer diffusers_sinusoidal speecht5_scaled notebook_001 d2l notebook_002 notebook_004 nemo_nmt softs_inc32 zoedepth patchtst_sincos tape wenet_firered espnet_rel nemo_asr_rel wav2vec2_conformer_rel seamless_m4t_rel fastspeech2_conformer_rel fairseq_conformer_rel parakeet_rel speechbrain_rel_xl transformer_xl xlnet nemo_tts kimi_k25 bros pp_doclayout_v2_relation fairseq m2m100 xglm nllb_moe speech_to_text seamless_m4t trocr speecht5 fsmt musicgen opennmt_py_concat pegasus_x whisper hf_whisper fun_asr_nano canary texar timesfm gemma3n_audio fairseq2 funasr hf_marian hf_pegasus hf_roformer hf_informer hf_autoformer hf_time_series_transformer xlm flaubert distilbert attention_is_all_you_need_pytorch videomae flax_wmt sam_lynn_evans diffusers_1d_sincos cct ctrl x_transformers keras_sine simple_vit_1d gradium_phonon_duration sam2_1d positional_encodings_1d positional_encodings_1d_v5_0 diffusers_timesteps guided_diffusion dit monai_timesteps ddpm_lucidrains qwen2_5_omni_timesteps pi0_timesteps mae_2d vit_mae aimv2_2d diffusers_2d_sincos detr_2d hf_detr_2d maskformer_2d mask2former_2d mmdet_2d sam2_2d deformable_detr_2d dab_detr_2d grounding_dino_2d conditional_detr_points timm_2d rt_detr_2d rt_detr_2d_v4 moco_v3_2d monai_2d simple_vit_2d loftr_2d positional_encodings_2d diffusers_3d_sincos positional_encodings_3d simple_vit_3d nerf perceiver_fourier tensor2tensor opennmt_tf' ;;
    --batch|--beams|--dim|--length|--max-length|--n-best|--threads) return ;;
  esac
  case ${COMP_WORDS[1]} in
    version) options='-h --help' ;;
    help) options='-h --help' ;;
    verify) options='-h --help --module --prefix --param' ;;
    run) options='-h --help --module --prefix --param --input --out' ;;
    table) options='-h --help --preset --dim --param --precision --cases --out --length --positions' ;;
    rotary) options='-h --help --param --layer-type --precision --layout --in --out [Exactly --config --preset' ;;
    presets) options='-h --help --json --rotary --fronts --vision' ;;
    identify) options='-h --help --json' ;;
    plot) options='-h --help --out --preset --rotary --dim --length --param' ;;
    inspect) options='-h --help --json' ;;
    convert) options='-h --help' ;;
    encode) options='-h --help --in --out' ;;
    translate) options='-h --help --model --beams --max-length --n-best --batch --threads --truncate' ;;
  esac
  if [ "${COMP_WORDS[1]}" = help ] && [[ $current != -* ]]; then
    words='version help verify run table rotary presets identify plot inspect convert encode translate'
  fi
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _posenc posenc
