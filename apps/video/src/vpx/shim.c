// What the module vpx asks of libvpx, with types of its own: no structure of libvpx is laid out a second time in Rust.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vpx/vp8cx.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>
#include <vpx/vpx_encoder.h>

#define LAYERS 3
#define MESSAGE 160

struct hvq_settings {
    uint32_t width;
    uint32_t height;
    uint32_t pictures;         // so many pictures ...
    uint32_t seconds;          // ... in so many seconds
    uint32_t kilobits[LAYERS]; // per second, of each layer by itself
    uint32_t speed;            // 5 to 9
    uint32_t layers;           // as many as are encoded, from the base layer on
};

// The quantizers, from 0 to 63, that the base layer may have.
struct hvq_range {
    uint32_t least;
    uint32_t most;
};

struct hvq_encoder {
    vpx_codec_ctx_t context;
    vpx_codec_enc_cfg_t config;
    vpx_image_t image;
    vpx_codec_pts_t next;
    int layers;
    uint32_t speed;
    struct hvq_range quantizers;
    int scene; // whether the latest picture began one
    char message[MESSAGE];
};

struct hvq_decoder {
    vpx_codec_ctx_t context;
    vpx_image_t *image;
    char message[MESSAGE];
};

static int failed(vpx_codec_ctx_t *context, vpx_codec_err_t error, const char *what, char *message) {
    if (error == VPX_CODEC_OK) return 0;
    const char *detail = vpx_codec_error_detail(context);
    snprintf(message, MESSAGE, "%s: %s%s%s", what, vpx_codec_err_to_string(error), detail ? ": " : "",
             detail ? detail : "");
    return 1;
}

static void set_rates(vpx_codec_enc_cfg_t *config, const uint32_t *kilobits) {
    config->rc_target_bitrate = 0;
    for (int layer = 0; layer < (int)config->ss_number_layers; layer++) {
        config->ss_target_bitrate[layer] = kilobits[layer];
        config->layer_target_bitrate[layer] = (int)kilobits[layer];
        config->rc_target_bitrate += kilobits[layer];
    }
}

static int set_layers(struct hvq_encoder *encoder) {
    vpx_svc_extra_cfg_t layers;
    memset(&layers, 0, sizeof layers);
    for (int layer = 0; layer < encoder->layers; layer++) {
        // The base layer is to have its rate in each frame, not on average: what is too large for it comes late.
        layers.max_quantizers[layer] = layer ? 56 : (int)encoder->quantizers.most;
        layers.min_quantizers[layer] = layer ? 2 : (int)encoder->quantizers.least;
        // The base layer has the fewest bits, and those that all others build upon.
        layers.speed_per_layer[layer] = (int)encoder->speed - (layer == 0 && encoder->speed > 5);
        layers.scaling_factor_num[layer] = 1;
        layers.scaling_factor_den[layer] = 1;
    }
    return failed(&encoder->context, vpx_codec_control(&encoder->context, VP9E_SET_SVC_PARAMETERS, &layers), "layers",
                  encoder->message);
}

static int configure(struct hvq_encoder *encoder) {
    vpx_codec_ctx_t *context = &encoder->context;
    char *message = encoder->message;
    return set_layers(encoder) || failed(context, vpx_codec_control(context, VP9E_SET_SVC, 1), "layers", message) ||
           failed(context, vpx_codec_control(context, VP8E_SET_CPUUSED, (int)encoder->speed), "speed", message) ||
           failed(context, vpx_codec_control(context, VP9E_SET_AQ_MODE, 3), "quantizers", message) ||
           failed(context, vpx_codec_control(context, VP8E_SET_STATIC_THRESHOLD, 1), "threshold", message) ||
           failed(context, vpx_codec_control(context, VP9E_SET_GF_CBR_BOOST_PCT, 0), "boost", message) ||
           failed(context, vpx_codec_control(context, VP8E_SET_MAX_INTRA_BITRATE_PCT, 900), "key frames", message) ||
           failed(context, vpx_codec_control(context, VP9E_SET_SVC_INTER_LAYER_PRED, 0), "prediction", message);
}

// Returns an encoder, or null and the reason in `message`, which has room for MESSAGE bytes.
struct hvq_encoder *hvq_vpx_encoder_open(const struct hvq_settings *settings, char *message) {
    struct hvq_encoder *encoder = calloc(1, sizeof *encoder);
    if (!encoder) return NULL;
    vpx_codec_iface_t *vp9 = vpx_codec_vp9_cx();
    vpx_codec_enc_cfg_t *config = &encoder->config;
    encoder->layers = (int)settings->layers;
    encoder->speed = settings->speed;
    encoder->quantizers = (struct hvq_range){0, 63};
    if (failed(NULL, vpx_codec_enc_config_default(vp9, config, 0), "defaults", message)) goto fail;
    config->g_w = settings->width;
    config->g_h = settings->height;
    config->g_timebase.num = (int)settings->seconds;
    config->g_timebase.den = (int)settings->pictures;
    config->g_threads = 1;
    config->g_pass = VPX_RC_ONE_PASS;
    config->g_lag_in_frames = 0;
    // Without it the layers below the highest cannot be decoded by themselves.
    config->g_error_resilient = VPX_ERROR_RESILIENT_DEFAULT;
    config->rc_end_usage = VPX_CBR;
    config->rc_min_quantizer = 2;
    config->rc_max_quantizer = 63;
    config->rc_undershoot_pct = 50;
    config->rc_overshoot_pct = 20;
    // In milliseconds: a quarter of a second, for the same reason.
    config->rc_buf_sz = 250;
    config->rc_buf_initial_sz = 125;
    config->rc_buf_optimal_sz = 150;
    config->rc_dropframe_thresh = 0;
    config->rc_resize_allowed = 0;
    config->kf_mode = VPX_KF_DISABLED;
    config->ss_number_layers = settings->layers;
    config->ts_number_layers = 1;
    config->ts_rate_decimator[0] = 1;
    config->ts_periodicity = 1;
    // References are given with each picture.
    config->temporal_layering_mode = VP9E_TEMPORAL_LAYERING_MODE_BYPASS;
    set_rates(config, settings->kilobits);
    vpx_codec_err_t error = vpx_codec_enc_init(&encoder->context, vp9, config, 0);
    if (failed(&encoder->context, error, "encoder", message)) goto fail;
    if (configure(encoder)) {
        memcpy(message, encoder->message, MESSAGE);
        vpx_codec_destroy(&encoder->context);
        goto fail;
    }
    return encoder;
fail:
    free(encoder);
    return NULL;
}

void hvq_vpx_encoder_close(struct hvq_encoder *encoder) {
    vpx_codec_destroy(&encoder->context);
    free(encoder);
}

const char *hvq_vpx_encoder_message(const struct hvq_encoder *encoder) { return encoder->message; }

// Rates from the next picture on. Returns 0, or 1 and leaves a message.
int hvq_vpx_encoder_set_rates(struct hvq_encoder *encoder, const uint32_t *kilobits) {
    set_rates(&encoder->config, kilobits);
    vpx_codec_err_t error = vpx_codec_enc_config_set(&encoder->context, &encoder->config);
    return failed(&encoder->context, error, "rates", encoder->message);
}

// Where picture `number` of a layer is kept, as HELD of the module layers says: late layers find the ones that they refer to.
static int place(int layer, unsigned number) {
    static const unsigned first[LAYERS] = {0, 4, 7}, held[LAYERS] = {4, 3, 1};
    return (int)(first[layer] + number % held[layer]);
}

// Says whether the next picture begins a scene. At the quantizer of the picture before it would be too large by far: libvpx
// notices that and encodes it again at a higher one, but only what it takes for the content of a screen and has at least
// 640x360 pixels or so.
int hvq_vpx_encoder_set_scene(struct hvq_encoder *encoder, int scene) {
    if (scene == encoder->scene) return 0;
    encoder->scene = scene;
    int content = scene ? VP9E_CONTENT_SCREEN : VP9E_CONTENT_DEFAULT;
    vpx_codec_err_t error = vpx_codec_control(&encoder->context, VP9E_SET_TUNE_CONTENT, content);
    return failed(&encoder->context, error, "scene", encoder->message);
}

// Encodes a picture (I420 without gaps) with these references, with key = 1 as a key frame.
static int encode(struct hvq_encoder *encoder, const uint8_t *picture, int key, vpx_svc_ref_frame_config_t *references,
                  const uint8_t **bytes, size_t *length) {
    vpx_codec_ctx_t *context = &encoder->context;
    if (failed(context, vpx_codec_control(context, VP9E_SET_SVC_REF_FRAME_CONFIG, references), "references",
               encoder->message))
        return 1;
    vpx_svc_layer_id_t id;
    memset(&id, 0, sizeof id);
    if (failed(context, vpx_codec_control(context, VP9E_SET_SVC_LAYER_ID, &id), "layer", encoder->message)) return 1;
    // libvpx takes no pointer to const but does not write to it.
    if (!vpx_img_wrap(&encoder->image, VPX_IMG_FMT_I420, encoder->config.g_w, encoder->config.g_h, 1,
                      (unsigned char *)picture)) {
        snprintf(encoder->message, MESSAGE, "the picture has no usable size");
        return 1;
    }
    // vpx_img_wrap counts (w + 1) / 2 columns of colour, as I420 without gaps has them, only for an even width.
    size_t columns = (encoder->config.g_w + 1) / 2, rows = (encoder->config.g_h + 1) / 2;
    encoder->image.stride[VPX_PLANE_Y] = (int)encoder->config.g_w;
    encoder->image.stride[VPX_PLANE_U] = encoder->image.stride[VPX_PLANE_V] = (int)columns;
    encoder->image.planes[VPX_PLANE_U] = (unsigned char *)picture + (size_t)encoder->config.g_w * encoder->config.g_h;
    encoder->image.planes[VPX_PLANE_V] = encoder->image.planes[VPX_PLANE_U] + columns * rows;
    vpx_enc_frame_flags_t flags = key ? VPX_EFLAG_FORCE_KF : 0;
    vpx_codec_err_t error =
        vpx_codec_encode(context, &encoder->image, encoder->next++, 1, flags, VPX_DL_REALTIME);
    if (failed(context, error, "picture", encoder->message)) return 1;
    *bytes = NULL;
    *length = 0;
    vpx_codec_iter_t iterator = NULL;
    const vpx_codec_cx_pkt_t *packet;
    while ((packet = vpx_codec_get_cx_data(context, &iterator)))
        if (packet->kind == VPX_CODEC_CX_FRAME_PKT) {
            *bytes = packet->data.frame.buf;
            *length = packet->data.frame.sz;
        }
    return 0;
}


// Encodes a picture, with key = 1 as a key frame, with such a quantizer of the base layer; bit k of `fresh` says that layer k
// refers to no frame before. The superframe stays valid until the next call. Returns 0, or 1 and leaves a message.
int hvq_vpx_encode(struct hvq_encoder *encoder, const uint8_t *picture, int key, uint32_t fresh,
                   const struct hvq_range *quantizers, const uint8_t **bytes, size_t *length) {
    vpx_svc_ref_frame_config_t references;
    memset(&references, 0, sizeof references);
    unsigned number = (unsigned)encoder->next;
    for (int layer = 0; layer < LAYERS; layer++) {
        // Each layer has some of the eight places in turn; last is its picture before, golden the layer below of this picture.
        int before = place(layer, number ? number - 1 : 0);
        references.lst_fb_idx[layer] = before;
        references.gld_fb_idx[layer] = layer ? place(layer - 1, number) : before;
        references.alt_fb_idx[layer] = before;
        references.update_buffer_slot[layer] = 1 << place(layer, number);
        references.reference_last[layer] = !(fresh >> layer & 1);
        references.reference_golden[layer] = layer > 0;
    }
    encoder->quantizers = *quantizers;
    return set_layers(encoder) || encode(encoder, picture, key, &references, bytes, length);
}

// Encodes a picture with an encoder of one layer, as hvq_vpx_encode does with its base layer, to see how large that is. Of the
// eight places for pictures, it refers to the one in `from` and is put into `to`. Returns 0, or 1 and leaves a message.
int hvq_vpx_rehearse(struct hvq_encoder *encoder, const uint8_t *picture, int key, uint32_t from, uint32_t to,
                     const struct hvq_range *quantizers, size_t *length) {
    vpx_svc_ref_frame_config_t references;
    memset(&references, 0, sizeof references);
    references.lst_fb_idx[0] = references.gld_fb_idx[0] = references.alt_fb_idx[0] = (int)from;
    references.update_buffer_slot[0] = 1 << to;
    references.reference_last[0] = !key;
    encoder->quantizers = *quantizers;
    const uint8_t *bytes;
    return set_layers(encoder) || encode(encoder, picture, key, &references, &bytes, length);
}

// Returns a decoder, or null and the reason in `message`, which has room for MESSAGE bytes.
struct hvq_decoder *hvq_vpx_decoder_open(char *message) {
    struct hvq_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return NULL;
    vpx_codec_dec_cfg_t config = {1, 0, 0};
    vpx_codec_err_t error = vpx_codec_dec_init(&decoder->context, vpx_codec_vp9_dx(), &config, 0);
    if (failed(&decoder->context, error, "decoder", message)) {
        free(decoder);
        return NULL;
    }
    return decoder;
}

void hvq_vpx_decoder_close(struct hvq_decoder *decoder) {
    vpx_codec_destroy(&decoder->context);
    free(decoder);
}

const char *hvq_vpx_decoder_message(const struct hvq_decoder *decoder) { return decoder->message; }

// Decodes one layer. Returns 0, or 1 and leaves a message. The picture is that of hvq_vpx_decoder_picture.
int hvq_vpx_decode(struct hvq_decoder *decoder, const uint8_t *bytes, size_t length) {
    decoder->image = NULL;
    vpx_codec_err_t error = vpx_codec_decode(&decoder->context, bytes, (unsigned)length, NULL, 0);
    if (failed(&decoder->context, error, "frame", decoder->message)) return 1;
    vpx_codec_iter_t iterator = NULL;
    vpx_image_t *image;
    while ((image = vpx_codec_get_frame(&decoder->context, &iterator))) decoder->image = image;
    return 0;
}

// The size of the picture that the last call decoded, 0 if there is none of a kind that is understood.
void hvq_vpx_decoder_size(const struct hvq_decoder *decoder, uint32_t *width, uint32_t *height) {
    const vpx_image_t *image = decoder->image;
    int known = image && image->fmt == VPX_IMG_FMT_I420;
    *width = known ? image->d_w : 0;
    *height = known ? image->d_h : 0;
}

// Copies it to `picture`, which has room for I420 of that size without gaps.
void hvq_vpx_decoder_picture(const struct hvq_decoder *decoder, uint8_t *picture) {
    const vpx_image_t *image = decoder->image;
    for (int plane = 0; plane < 3; plane++) {
        size_t width = plane ? (image->d_w + 1) / 2 : image->d_w;
        size_t height = plane ? (image->d_h + 1) / 2 : image->d_h;
        for (size_t row = 0; row < height; row++, picture += width)
            memcpy(picture, image->planes[plane] + (ptrdiff_t)row * image->stride[plane], width);
    }
}
