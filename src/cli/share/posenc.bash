# Completion of posenc for bash; written by tools/docs.py
_posenc() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options= words=
  COMPREPLY=()
  if [ "$current" = = ]; then current=; fi
  if [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W 'version help table rotary relative presets identify inspect convert encode classify fill tokenize detokenize generate translate freeze similarity merge rank adapter transcribe -h --help -V --version' -- "$current"))
    return
  fi
  case "${COMP_WORDS[1]} $previous" in
    'table --preset') words='vaswani2017 notebook_000 notebook_003 annotated_transformer pytorch_tutorial labml espnet opennmt_py speechbrain joeynmt bert_pytorch informer autoformer wenet nemo_asr fairseq_conformer diffusers_sinusoidal speecht5_scaled notebook_001 d2l notebook_002 notebook_004 nemo_nmt softs_inc32 zoedepth patchtst_sincos tape wenet_firered espnet_rel nemo_asr_rel wav2vec2_conformer_rel seamless_m4t_rel fastspeech2_conformer_rel fairseq_conformer_rel parakeet_rel speechbrain_rel_xl transformer_xl xlnet nemo_tts kimi_k25 bros pp_doclayout_v2_relation fairseq m2m100 xglm nllb_moe speech_to_text seamless_m4t trocr speecht5 fsmt musicgen opennmt_py_concat pegasus_x whisper hf_whisper fun_asr_nano canary texar timesfm gemma3n_audio fairseq2 funasr hf_marian hf_pegasus hf_roformer hf_informer hf_autoformer hf_time_series_transformer xlm flaubert distilbert attention_is_all_you_need_pytorch videomae flax_wmt sam_lynn_evans diffusers_1d_sincos cct ctrl x_transformers keras_sine simple_vit_1d gradium_phonon_duration sam2_1d positional_encodings_1d positional_encodings_1d_v5_0 diffusers_timesteps guided_diffusion dit monai_timesteps ddpm_lucidrains qwen2_5_omni_timesteps pi0_timesteps mae_2d vit_mae aimv2_2d diffusers_2d_sincos detr_2d hf_detr_2d maskformer_2d mask2former_2d mmdet_2d sam2_2d deformable_detr_2d dab_detr_2d grounding_dino_2d conditional_detr_points timm_2d rt_detr_2d rt_detr_2d_v4 moco_v3_2d monai_2d simple_vit_2d loftr_2d positional_encodings_2d diffusers_3d_sincos positional_encodings_3d simple_vit_3d nerf perceiver_fourier tensor2tensor opennmt_tf' ;;
    'table --dim') return ;;
    'table --param') return ;;
    'table --precision') words='reference exact' ;;
    'table --length') return ;;
    'rotary --param') return ;;
    'rotary --layer-type') return ;;
    'rotary --precision') words='reference exact' ;;
    'rotary --layout') words='bhld blhd' ;;
    'rotary --preset') words='llama gpt_neox nanochat olmo esm gpt_oss xcodec2 gemma3 gemma3n gemma4 gemma4_partial hunyuan_v1 molmo2 phimoe mellum modernbert olmo3 laguna mimo_v2_flash wav2vec2_conformer clvp blt cohere privacy_filter helium pe_audio glm ernie4_5 deepseek_v3 mistral_large4 dots3_note qwen2_5_omni_dit deepseek_v2 llama4 deepseek_v4 gptj codegen roformer qwen2_vl qwen3_vl cohere_compass qwen3_5 glm4v glm4v_moe hunyuan_vl ernie4_5_vl neomme qwen2_vl_vision muse_vision step3p7_vision kimi_k25_vision inkling2_vision pixtral gemma4_vision minimax_m3_vision llama4_vision dinov3 sam2_video sam3_vit vjepa2 efficientloftr esmfold2 musicflamingo lightglue stable_audio3 flux wan hunyuan_video lumina2 z_image qwen_image lumina_next cogview4 cosmos ltx ltx2 ltx2_split ltx2_vae mochi hidream_image kandinsky5 kandinsky6 ernie_image allegro minimax_h3_video torchtune meta_llama x_transformers xpos timm_mixed timm_cat timm_rope timm_dinov3 timm_mrope' ;;
    'encode --threads') return ;;
    'encode --int8-block') words='64 128' ;;
    'encode --scale') return ;;
    'encode --task') words='query document' ;;
    'encode --prompt') return ;;
    'encode --prompt-text') return ;;
    'encode --truncate-dim') return ;;
    'encode --max-active-dims') return ;;
    'encode --top') return ;;
    'encode --pool-factor') return ;;
    'encode --batch') return ;;
    'encode --precision') words='int8 uint8 binary ubinary' ;;
    'classify --prompt') return ;;
    'classify --prompt-text') return ;;
    'classify --top') return ;;
    'classify --aggregation') words='none simple first average max' ;;
    'classify --stride') return ;;
    'classify --batch') return ;;
    'classify --threads') return ;;
    'classify --int8-block') words='64 128' ;;
    'classify --scale') return ;;
    'fill --top') return ;;
    'fill --target') return ;;
    'fill --batch') return ;;
    'fill --threads') return ;;
    'fill --int8-block') words='64 128' ;;
    'fill --scale') return ;;
    'tokenize --max-length') return ;;
    'generate --set') return ;;
    'generate --threads') return ;;
    'generate --int8-block') words='64 128' ;;
    'generate --coverage-penalty') return ;;
    'generate --seed') return ;;
    'generate --chat-template-kwargs') return ;;
    'generate --stop') return ;;
    'generate --batch') return ;;
    'translate --beams') return ;;
    'translate --max-length') return ;;
    'translate --n-best') return ;;
    'translate --batch') return ;;
    'translate --threads') return ;;
    'translate --src-lang') return ;;
    'translate --tgt-lang') return ;;
    'translate --prefix') return ;;
    'translate --target-prefix') return ;;
    'translate --int8-block') words='64 128' ;;
    'freeze --threads') return ;;
    'freeze --int8-block') words='64 128' ;;
    'freeze --scale') return ;;
    'similarity --similarity') return ;;
    'similarity --threads') return ;;
    'merge --scale') return ;;
    'rank --query') return ;;
    'rank --top') return ;;
    'rank --similarity') return ;;
    'rank --prompt') return ;;
    'rank --prompt-text') return ;;
    'rank --batch') return ;;
    'rank --threads') return ;;
    'rank --int8-block') words='64 128' ;;
    'rank --scale') return ;;
    'adapter --scale') return ;;
    'transcribe --rate') return ;;
    'transcribe --set') return ;;
    'transcribe --language') return ;;
    'transcribe --task') words='transcribe translate' ;;
    'transcribe --timestamps') words='none segment word' ;;
    'transcribe --prompt') return ;;
    'transcribe --seed') return ;;
    'transcribe --batch') return ;;
    'transcribe --int8-block') words='64 128' ;;
    'transcribe --threads') return ;;
  esac
  case ${COMP_WORDS[1]} in
    version) options='-h --help' ;;
    help) options='-h --help' ;;
    table) options='-h --help --preset --dim --param --precision --cases --out --length --positions' ;;
    rotary) options='-h --help --param --layer-type --precision --layout --in --out --config --preset' ;;
    relative) options='-h --help --config --in --out' ;;
    presets) options='-h --help --json --rotary --relative --embeddings --fronts --vision --encoders --decoders' ;;
    identify) options='-h --help --json' ;;
    inspect) options='-h --help --json' ;;
    convert) options='-h --help' ;;
    encode) options='-h --help --in --text --out --head --threads --int8 --int8-block --bfloat16 --compute-bfloat16 --float32-scores --allow-unexpected --adapter --scale --base --task --prompt --prompt-text --normalize --truncate-dim --sparse --max-active-dims --decode --top --per-token --pool-factor --batch --precision --ranges' ;;
    classify) options='-h --help --text --pair --prompt --prompt-text --top --aggregation --stride --batch --threads --int8 --int8-block --bfloat16 --compute-bfloat16 --float32-scores --allow-unexpected --adapter --scale --base' ;;
    fill) options='-h --help --text --top --target --batch --threads --int8 --int8-block --bfloat16 --compute-bfloat16 --float32-scores --allow-unexpected --adapter --scale --base' ;;
    tokenize) options='-h --help --pair --no-special --max-length --count --json' ;;
    detokenize) options='-h --help --keep-special' ;;
    generate) options='-h --help --in --out --text --set --plain --threads --int8 --int8-block --bfloat16 --compute-bfloat16 --float32-scores --allow-unexpected --attention --coverage-penalty --seed --logits --chat --chat-template-kwargs --stop --batch' ;;
    translate) options='-h --help --model --beams --max-length --n-best --batch --threads --src-lang --tgt-lang --prefix --target-prefix --json --alignments --int8 --int8-block --bfloat16 --compute-bfloat16 --float32-scores --allow-unexpected --truncate' ;;
    freeze) options='-h --help --threads --int8 --int8-block --bfloat16 --compute-bfloat16 --float32-scores --without-head --allow-unexpected --adapter --scale --base' ;;
    similarity) options='-h --help --similarity --out --threads' ;;
    merge) options='-h --help --adapter --scale --base' ;;
    rank) options='-h --help --query --queries --text --top --similarity --prompt --prompt-text --batch --threads --int8 --int8-block --bfloat16 --compute-bfloat16 --float32-scores --allow-unexpected --adapter --scale --base' ;;
    adapter) options='-h --help --out --adapter --scale --base' ;;
    transcribe) options='-h --help --in --rate --out --set --language --task --timestamps --prompt --seed --batch --features --logits --plain --int8 --int8-block --bfloat16 --compute-bfloat16 --float32-scores --allow-unexpected --threads' ;;
  esac
  if [ "${COMP_WORDS[1]}" = help ] && [[ $current != -* ]]; then
    words='version help table rotary relative presets identify inspect convert encode classify fill tokenize detokenize generate translate freeze similarity merge rank adapter transcribe'
  fi
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _posenc posenc
